import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { daemonEnvironment, mappingsDir, saysRunning } from '../../test/support/daemon.ts'
import { freePort } from '../../test/support/freePort.ts'
import {
  createDatabaseOn,
  type EmbeddedPostgres,
  migrateAll,
  openPool,
  startPostgres,
} from '../../test/support/postgres.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { type Erp, startErp } from './erp.ts'
import { mountSmallDisk, type SmallDisk } from './smallDisk.ts'
import { haste } from './tenfold.ts'

/** `shared` is for all sites whose fault is not a server's. No fault touches the other server. */
export interface Servers {
  shared: EmbeddedPostgres
  still: EmbeddedPostgres
}

/** The template database of all sites. */
const template = 'story_template'

/** What a fault needs from its site. */
export interface SiteOptions {
  job: string
  /** True if the site has its own Postgres. */
  ownServer: boolean
  /** True if the tables are on a disk that can be filled. */
  smallDisk: boolean
  /** Returns more environment variables for the daemon. @param folder the site's folder */
  env(folder: string): Record<string, string>
}

/** An installation: a database, a service, a daemon as a process, and an ERP that writes a record a second. */
export interface Site extends AsyncDisposable {
  readonly job: string
  /** Port of the metrics, for each daemon of this site. */
  readonly port: number
  readonly pool: pg.Pool
  readonly postgres: EmbeddedPostgres
  readonly erp: Erp
  /** The daemon's folder, with its mapping files. */
  readonly folder: string
  /** The disk with the tables; null if they are on the common disk. */
  readonly disk: SmallDisk | null
  daemon(): Program
  /** Restarts the daemon and waits until it runs. */
  restart(env: Record<string, string>): Promise<void>
  /** Starts a daemon that cannot run. Resolves when it has ended. */
  restartInVain(): Promise<void>
  /** Stops the service, so that its port refuses connections. */
  closeService(): Promise<void>
  /** Adds a fault to the service. */
  fault(spec: Record<string, unknown>): Promise<void>
  /** Changes settings of the service. */
  change(settings: Record<string, unknown>): Promise<void>
  /** Reads the first line of `outboxd status`. */
  status(): Promise<string>
  /** Adds something to close at the end, before all else. */
  atEnd(end: () => Promise<void> | void): void
}

/** The durations of a night at full length, divided by the haste of the story. */
const quick = {
  RATE_LIMIT_WINDOW_SECONDS: String(60 / haste),
  // A third, because requests do not get faster.
  REQUEST_TIMEOUT_SECONDS: '10',
  UNAVAILABLE_PAUSE_SECONDS: String(300 / haste),
  UNAUTHORIZED_PAUSE_SECONDS: String(60 / haste),
}

export async function openSite(servers: Servers, options: SiteOptions): Promise<Site> {
  await using stack = new AsyncDisposableStack()
  const { job } = options
  const postgres = options.ownServer ? stack.use(await startServer()) : servers.shared
  const disk = options.smallDisk ? stack.use(await mountSmallDisk()) : null
  const url = await cloneDatabase(postgres, job, disk)
  const pool = openPool(url)
  stack.defer(() => pool.end())
  const service = stack.use(await startService(await createDatabaseOn(servers.still.url, `service of ${job}`)))
  const folder = await mkdtemp(join(tmpdir(), `story-${job}-`))
  stack.defer(() => rm(folder, { recursive: true }))
  await cp(mappingsDir, folder, { recursive: true })
  const port = await freePort()
  const env = daemonEnvironment(url, service.url, { ...quick, MAPPINGS_DIR: folder, HTTP_PORT: String(port) })
  const daemon = stack.use(await startDaemon({ ...env, ...options.env(folder) }))
  const erp = stack.use(startErp(url))
  const owned = stack.move()
  return {
    job,
    port,
    pool,
    postgres,
    erp,
    folder,
    disk,
    daemon: daemon.now,
    restart: daemon.restart,
    restartInVain: daemon.restartInVain,
    closeService: service.close,
    fault: (spec) => service.control('POST', 'faults', spec),
    change: (settings) => service.control('PATCH', 'settings', settings),
    async status() {
      const { stdout, stderr } = await startProgram({ args: ['status'], env }).ended()
      return `${stdout}${stderr}`.split('\n').find((line) => line.trim() !== '') ?? ''
    },
    atEnd: (end) => owned.defer(end),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Starts a service that can misbehave, and that can end before its site. */
async function startService(databaseUrl: string) {
  const sandbox = await startSandbox({
    databaseUrl,
    port: 0,
    rateLimitWindowSeconds: 60 / haste,
    processingTime: 'lognormal:0.3:0.5',
    synchronousCommit: 'off',
  })
  let closing: Promise<void> | undefined
  const close = () => (closing ??= sandbox.close())
  return {
    url: sandbox.url,
    close,
    async control(method: string, path: string, body: unknown): Promise<void> {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${sandbox.url}/_sandbox/${path}`, { method, headers, body: JSON.stringify(body) })
      if (!answer.ok) throw new Error(await answer.text())
    },
    [Symbol.asyncDispose]: close,
  }
}

/** Runs one daemon at a time, and replaces it on a restart. */
async function startDaemon(env: Record<string, string>) {
  const launch = (more: Record<string, string>) => startProgram({ args: ['run'], env: { ...env, ...more } })
  let daemon = launch({})
  await daemon.line(saysRunning)
  return {
    now: () => daemon,
    async restart(more: Record<string, string>): Promise<void> {
      await daemon.stop()
      daemon = launch(more)
      await daemon.line(saysRunning)
    },
    async restartInVain(): Promise<void> {
      await daemon.stop()
      daemon = launch({})
      await daemon.ended()
    },
    async [Symbol.asyncDispose](): Promise<void> {
      daemon.signal('SIGKILL') // what the daemon holds does not matter any more
      await daemon.ended()
    },
  }
}

async function cloneDatabase(postgres: EmbeddedPostgres, job: string, disk: SmallDisk | null): Promise<string> {
  if (disk === null) return createDatabaseOn(postgres.url, job, `template ${template}`)
  const pool = openPool(postgres.url)
  await pool.query(`create tablespace small location '${disk.folder}'`)
  await pool.end()
  return createDatabaseOn(postgres.url, job, `template ${template} tablespace small`)
}

/** Starts a Postgres with the template database. */
export async function startServer(): Promise<EmbeddedPostgres> {
  const server = await startPostgres({ fsync: 'off', synchronous_commit: 'off' })
  await migrateAll(await createDatabaseOn(server.url, template))
  return server
}
