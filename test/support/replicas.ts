import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import {
  chownTo,
  type PostgresProgram,
  preparePostgresProgram,
  runInitdb,
  startServer,
  stopServer,
} from '../../src/embedded/postgresServer.ts'
import { type Reaper, startReaper } from '../../src/embedded/reaper.ts'
import { type FaultProxy, startFaultProxy } from './faultProxy.ts'
import { freePort } from './freePort.ts'
import { until } from './until.ts'

/** One server of a cluster, primary or standby. */
export interface Node {
  /** URL of the database postgres, without a proxy. */
  readonly url: string
  readonly port: number
  readonly dataDir: string
  /** Sends SIGKILL to all its processes at once, so that nothing is finished. */
  kill(): Promise<void>
  /** Ends the server after it has written everything. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Ends the server like a power cut (SIGQUIT), and starts it again. */
  restartImmediately(): Promise<void>
  /** Makes a standby the primary. */
  promote(): Promise<void>
  /** Runs one statement in its own session, whose COMMIT waits for no standby. @param database by default postgres */
  run(text: string, database?: string): Promise<pg.QueryResult>
}

/** Servers that replicate, and a proxy that leads clients to one of them. */
export interface Replicas extends AsyncDisposable {
  readonly primary: Node
  /** Where clients connect. Leads to the primary until `redirect`. */
  readonly clientUrl: string
  /** Ends the clients' connections, and leads new ones to this server. */
  redirect(node: Node): Promise<void>
  /** Creates a standby of a server and waits until it follows. A fault on `link` cuts the standby off. */
  addStandby(of: Node, name?: string): Promise<{ standby: Node; link: FaultProxy }>
  /** Copies the folder of a running server, as pg_basebackup does. @returns the new folder */
  backUp(node: Node): Promise<string>
  /** Copies the folder of a stopped server. @returns the new folder */
  copyFolder(dataDir: string): Promise<string>
  /** Starts a server on a folder. @param files files to write there first, such as recovery.signal */
  startOn(dataDir: string, settings?: Record<string, string>, files?: Record<string, string>): Promise<Node>
  /** Removes a server for good. */
  drop(node: Node): Promise<void>
}

const common = { fsync: 'off', max_connections: '100', wal_keep_size: '64', wal_retrieve_retry_interval: '200ms' }

/**
 * Starts a primary on this host. Any number of standbys can follow it.
 *
 * @param binDir another PostgreSQL's folder of binaries, instead of the registry's
 */
export async function startReplicas(settings: Record<string, string> = {}, binDir?: string): Promise<Replicas> {
  const reaper = startReaper()
  const folder = await mkdtemp(join(tmpdir(), 'replicas-'))
  reaper.addFolder(folder)
  const program = await preparePostgresProgram(folder, binDir)
  const nodes = new Set<Node>()
  const links: FaultProxy[] = []
  let folders = 0
  const newFolder = () => join(folder, `data-${++folders}`)

  async function startOn(dataDir: string, more: Record<string, string> = {}, files: Record<string, string> = {}) {
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(dataDir, name), text)
      await chownTo(join(dataDir, name), program.account)
    }
    const port = await freePort()
    const given = { ...common, ...settings, ...more, port: String(port) }
    const node = await startNode({ program, reaper, folder, dataDir, settings: given })
    nodes.add(node)
    return node
  }

  async function drop(node: Node) {
    nodes.delete(node)
    await node.kill()
    await rm(node.dataDir, { recursive: true, force: true, maxRetries: 5 })
  }

  const first = newFolder()
  await runInitdb(program, first, ['--auth=trust', '--no-sync', '--wal-segsize=1'], folder)
  const primary = await startOn(first)
  const target = { host: '127.0.0.1', port: primary.port }
  const entrance = await startFaultProxy({ target })
  const backUp = async (node: Node) => {
    const copy = newFolder()
    await backUpTo(node, copy, program)
    return copy
  }
  return {
    primary,
    clientUrl: urlOf(entrance.port),
    async redirect(node) {
      await entrance.setFault({ kind: 'refuse' })
      target.port = node.port
      await entrance.setFault(null)
    },
    async addStandby(of, name = 'standby') {
      const link = await startFaultProxy({ target: { host: '127.0.0.1', port: of.port } })
      links.push(link)
      const conninfo = `host=127.0.0.1 port=${link.port} user=postgres application_name=${name}`
      const standby = await startOn(await backUp(of), { primary_conninfo: conninfo }, { 'standby.signal': '' })
      const follows = () =>
        of.run(`select from pg_stat_replication where application_name = '${name}' and state = 'streaming'`)
      await until(follows, ({ rowCount }) => (rowCount ?? 0) > 0)
      return { standby, link }
    },
    backUp,
    async copyFolder(dataDir) {
      const copy = newFolder()
      await copyTree(dataDir, copy)
      return copy
    },
    startOn,
    drop,
    async [Symbol.asyncDispose]() {
      await entrance.close()
      for (const link of links) await link.close()
      for (const node of nodes) await node.kill()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      await reaper.done()
    },
  }
}

const urlOf = (port: number) => `postgres://postgres:postgres@127.0.0.1:${port}/postgres`

interface NodeOptions {
  program: PostgresProgram
  reaper: Reaper
  folder: string
  dataDir: string
  settings: Record<string, string>
}

async function startNode({ program, reaper, folder, dataDir, settings }: NodeOptions): Promise<Node> {
  const url = urlOf(Number(settings.port))
  let server: ChildProcess
  const start = async () => {
    server = await startServer(program, { dataDir, folder, settings, detached: true })
    reaper.addProcess(server.pid as number, 'SIGQUIT')
  }
  const ended = async (how: () => Promise<void>) => {
    const pid = server.pid as number
    await how()
    reaper.removeProcess(pid)
  }
  const run = async (text: string, database = 'postgres') => {
    const connectionString = Object.assign(new URL(url), { pathname: `/${database}` }).href
    const client = new pg.Client({ connectionString, options: '-c synchronous_commit=local' })
    client.on('error', () => {})
    await client.connect()
    try {
      return await client.query(text)
    } finally {
      await client.end()
    }
  }
  await start()
  return {
    url,
    port: Number(settings.port),
    dataDir,
    kill: () => ended(() => killAll(server)),
    stop: () => ended(() => stopServer(server, 'SIGINT')),
    start,
    async restartImmediately() {
      await ended(() => stopServer(server, 'SIGQUIT'))
      await start()
    },
    async promote() {
      await run('select pg_promote()')
    },
    run,
  }
}

/** Stops the postmaster before the kills, so that it starts no process and notices no death. Each process is its own session. */
async function killAll(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exited = once(server, 'exit')
  server.kill('SIGSTOP')
  for (const child of await childrenOf(server.pid as number)) {
    try {
      process.kill(child, 'SIGKILL')
    } catch {} // it has ended by itself
  }
  server.kill('SIGKILL')
  await exited
}

async function childrenOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return children.trim().split(' ').filter(Boolean).map(Number)
}

async function backUpTo(node: Node, copy: string, program: PostgresProgram): Promise<void> {
  const client = new pg.Client(node.url)
  await client.connect()
  try {
    await client.query(`select pg_backup_start('copy', true)`)
    await copyTree(node.dataDir, copy)
    for (const name of ['postmaster.pid', 'postmaster.opts', 'standby.signal'])
      await rm(join(copy, name), { force: true })
    for (const name of await readdir(join(copy, 'pg_wal')))
      if (/^[0-9A-F]{24}/.test(name)) await rm(join(copy, 'pg_wal', name))
    await mkdir(join(copy, 'pg_wal', 'archive_status'), { recursive: true })
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    await writeFile(join(copy, 'backup_label'), rows[0]?.labelfile ?? '')
    await chownTo(join(copy, 'backup_label'), program.account)
  } finally {
    await client.end()
  }
}

/** Files may vanish while they are copied. The log repairs that. */
async function copyTree(from: string, to: string): Promise<void> {
  const copying = spawn('cp', ['-a', from, to], { stdio: 'ignore' })
  await once(copying, 'exit')
}
