import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { minimalChildEnvironment } from '../embedded/postgresServer.ts'
import { startReaper } from '../embedded/reaper.ts'
import { packageFolder } from '../packageFolder.ts'
import { startSandbox } from '../sandbox/startSandbox.ts'
import { createErpTables } from './erp.ts'
import { type CommandSpec, type RunningCommand, startOutboxdCommand } from './startOutboxdCommand.ts'

/** All processes of the demo. Disposal ends them. */
export interface Installation extends AsyncDisposable {
  readonly erp: pg.Pool
  readonly sandboxUrl: string
  readonly daemonUrl: string
  readonly consoleUrl: string | null
  /** For outboxd commands that use this installation. */
  readonly variables: Record<string, string>
  readonly folder: string
  watchStatus(onLine: (line: string) => void): RunningCommand
  /** Rejects when the daemon, the sandbox or the console ends by itself. Never resolves. */
  readonly broken: Promise<never>
}

interface InstallationDeps {
  /** The commands get this environment without databases, services and secrets. */
  env: Record<string, string | undefined>
  signal: AbortSignal
  hasConsole: boolean
  print: (message: string) => void
}

const mappingsDir = join(packageFolder, 'mappings')
const [clientId, clientSecret] = ['demo', 'demo-secret']

/** The limit is longer than the daemon waits before it is ready. */
const readyWithinMs = 10_000

/** Short, so that the demo ends soon. */
const processingTime = 'lognormal:1:0.3'

/** @throws the reason of `signal` if it is aborted */
export async function startDemo({ env, signal, hasConsole, print: say }: InstallationDeps): Promise<Installation> {
  await using stack = new AsyncDisposableStack()
  const reaper = startReaper()
  stack.defer(() => reaper.done())
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-demo-'))
  reaper.addFolder(folder)
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const base = { ...minimalChildEnvironment(env), NODE_ENV: 'production' }
  const start = (spec: Omit<CommandSpec, 'folder' | 'reaper'>, end = stack) => {
    const command = startOutboxdCommand({ ...spec, env: { ...base, ...spec.env }, folder, reaper })
    end.defer(() => command.stop())
    return command
  }

  say('starting PostgreSQL in a temporary folder, and the sandbox')
  const sandbox = stack.use(await startSandbox({ embedded: true, port: 0, clientId, clientSecret, processingTime }))
  const erpUrl = Object.assign(new URL(sandbox.databaseUrl), { pathname: '/erp' }).href
  await runSql(sandbox.databaseUrl, 'create database erp')
  signal.throwIfAborted()

  say('outboxd migrate --outbox')
  const databases = { DATABASE_URL: erpUrl, OUTBOX_TABLE: 'outbox' }
  await start({ args: ['migrate', '--outbox'], env: databases }).ended
  const erp = openPool(stack, erpUrl)
  await createErpTables(erp)
  signal.throwIfAborted()

  say('outboxd run (the daemon starts to send when its database has been up for some seconds)')
  const variables = {
    ...databases,
    ...{ SERVICE_BASE_URL: sandbox.url, SERVICE_AUTH_URL: sandbox.url },
    ...{ SERVICE_CLIENT_ID: clientId, SERVICE_CLIENT_SECRET: clientSecret, MAPPINGS_DIR: mappingsDir },
  }
  const daemon = start({ args: ['run'], env: { ...variables, HTTP_PORT: '0' }, announcedField: 'port' })
  const daemonUrl = `http://127.0.0.1:${await daemon.announcedValue}`
  await untilReady(daemonUrl, signal)
  const served = hasConsole
    ? [start({ args: ['console', '--port', '0', '--json'], env: variables, announcedField: 'url' })]
    : []
  const consoleUrl = (await served[0]?.announcedValue) ?? null
  if (consoleUrl !== null) say(`outboxd console: ${consoleUrl}`)
  signal.throwIfAborted()
  const ends = [sandbox.failed, ...[daemon, ...served].map(({ ended }) => ended)]
  const broken = Promise.race(ends).then((why) => {
    throw new Error(`the daemon, the sandbox or the console ended by itself. ${why ?? ''}`)
  })
  broken.catch(() => {}) // no unhandled rejection when the demo itself stops the parts
  const all = stack.move()
  return {
    ...{ erp, sandboxUrl: sandbox.url, daemonUrl, consoleUrl, variables, folder, broken },
    watchStatus: (onLine) => start({ args: ['status', '--watch'], env: variables, onStdoutLine: onLine }, all),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/** Waits for the daemon's loops, which begin some seconds after Postgres. */
async function untilReady(daemonUrl: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + readyWithinMs
  while (performance.now() < deadlineMs) {
    const answer = await fetch(`${daemonUrl}/readyz`, { signal }).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok) return
    await delay(100, undefined, { signal })
  }
}

async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

function openPool(stack: AsyncDisposableStack, url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 3, application_name: 'ERP', connectionTimeoutMillis: 5_000 })
  // Without these listeners, a connection that Postgres ends would end the demo.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  stack.defer(() => pool.end())
  return pool
}
