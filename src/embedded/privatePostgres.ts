import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  chownTo,
  findPostgresProgram,
  type Program,
  readMajorVersion,
  runInitdb,
  ServerEnded,
  startServer,
  stopServer,
} from './postgresServer.ts'
import { type Reaper, startReaper } from './reaper.ts'

export interface PrivatePostgres {
  /** Has no password, because the socket is in a folder that only this account and root can enter. */
  readonly url: string
  readonly pid: number
  /** Resolves with the reason and the last output if the server ends before `stop`. */
  readonly failed: Promise<string>
  stop(): Promise<void>
}

const everySettings = { listen_addresses: '', unix_socket_permissions: '0700' }

const temporarySettings = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }

/** A socket's path has at most 103 bytes on macOS, of which the rest takes 41. */
const folderLengthMax = 60

/** The time in which the processes of a killed server or sandbox end. */
const leavingMs = 10_000

/** A signal to the whole process group may end the server before we stop it, so this wait comes first. */
const stoppingMs = 100

const lastWordsMax = 2000

/**
 * Starts a PostgreSQL that ends with this process, however that ends.
 *
 * @param dataDir keeps its data; without it they are in a temporary folder
 * @throws DataFolderUnusable; Error naming the missing package, or quoting the server
 */
export async function startPrivatePostgres(dataDir?: string): Promise<PrivatePostgres> {
  await using stack = new AsyncDisposableStack()
  const reaper = startReaper()
  stack.defer(() => reaper.done())
  const folder = await mkdtemp(join(tmpdir().length > folderLengthMax ? '/tmp' : tmpdir(), 'outboxd-postgres-'))
  reaper.addFolder(folder)
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const parts = { program: await findPostgresProgram(folder), reaper, folder }
  const server = await (dataDir === undefined ? startTemporary(stack, parts) : startKept(stack, parts, dataDir))
  const all = stack.move()
  return {
    url: `postgres://postgres@localhost:5432/postgres?host=${encodeURIComponent(folder)}&sslmode=disable`,
    ...server,
    stop: () => all.disposeAsync(),
  }
}

interface Parts {
  program: Program
  reaper: Reaper
  folder: string
}

type Server = Pick<PrivatePostgres, 'pid' | 'failed'>

async function startTemporary(stack: AsyncDisposableStack, parts: Parts): Promise<Server> {
  const { program, folder } = parts
  const cluster = join(folder, 'data')
  // The first segment of the log is small, because writing 16 MB of zeros takes longer than all other steps.
  await runInitdb(program, cluster, [...trust, '--no-sync', '--no-data-checksums', '--wal-segsize=1'], folder)
  return start(stack, parts, { cluster, settings: temporarySettings, end: 'SIGQUIT', user: async () => undefined })
}

async function startKept(stack: AsyncDisposableStack, parts: Parts, dataDir: string): Promise<Server> {
  const { program, reaper, folder } = parts
  const cluster = await findOrCreateCluster(program, dataDir, reaper, (unfinished) =>
    runInitdb(program, unfinished, trust, folder),
  )
  const user = async () => {
    const name = await describeProcessUsing(dataDir)
    return name === `process ${process.pid}` ? undefined : name
  }
  try {
    const server = await start(stack, parts, { cluster, settings: {}, end: 'SIGINT', user })
    await recordProcessUsing(dataDir)
    return server
  } catch (error) {
    if (!isInUse(error)) throw error
    throw new DataFolderUnusable(
      dataDir,
      `${(await describeProcessUsing(dataDir)) ?? 'a PostgreSQL'} uses it. Stop that one, or name another folder`,
    )
  }
}

const trust = ['--auth-local=trust', '--auth-host=reject']

interface Cluster {
  cluster: string
  settings: Record<string, string>
  end: 'SIGQUIT' | 'SIGINT'
  /** Names the other process that uses it. */
  user: () => Promise<string | undefined>
}

async function start(
  stack: AsyncDisposableStack,
  { program, reaper, folder }: Parts,
  { cluster, settings, end, user }: Cluster,
): Promise<Server> {
  let pid = 0
  const onStart = (started: number) => {
    if (pid !== 0) reaper.removeProcess(pid) // an attempt that found the data in use
    reaper.addProcess(started, end)
    pid = started
  }
  const options = { dataDir: cluster, folder, settings: { ...everySettings, ...settings }, detached: true, onStart }
  const server = await whenFree(() => startServer(program, options), user)
  let lastWords = ''
  server.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-lastWordsMax)
  })
  const { promise: failed, resolve } = Promise.withResolvers<string>()
  let isStopping = false
  server.once('exit', async (code, signal) => {
    await delay(stoppingMs, undefined, { ref: false })
    if (!isStopping)
      resolve(`its PostgreSQL ended (${signal ?? `exit code ${code}`}); it said last: ${lastWords.trim()}`)
  })
  stack.defer(async () => {
    isStopping = true
    await stopServer(server, end)
    reaper.removeProcess(pid)
  })
  return { pid, failed }
}

/**
 * Waits for the processes of the previous server.
 * @throws at once if another process uses the data
 */
async function whenFree<T>(startIt: () => Promise<T>, user: () => Promise<string | undefined>): Promise<T> {
  const givesUpMs = performance.now() + leavingMs
  for (;;) {
    try {
      return await startIt()
    } catch (error) {
      if (!isInUse(error) || performance.now() > givesUpMs || (await user()) !== undefined) throw error
      await delay(100)
    }
  }
}

function isInUse(error: unknown): boolean {
  return (
    error instanceof ServerEnded &&
    /"postmaster\.pid" already exists|shared memory block .*is still in use/.test(error.said)
  )
}

export class DataFolderUnusable extends Error {
  override name = 'DataFolderUnusable'
  constructor(folder: string, why: string, cause?: unknown) {
    super(`${folder} cannot keep the data: ${why}`, { cause })
  }
}

/** Different from the defaults, so that another PostgreSQL's data are never taken for ours. */
const clusterName = 'postgres'
const userName = 'process.pid'
const unfinishedName = 'unfinished-'

/**
 * Finds the cluster in a folder, or makes one there, completely or not at all, even if this process is killed.
 *
 * @param initialise makes a cluster in the given empty folder
 * @throws DataFolderUnusable
 */
export async function findOrCreateCluster(
  program: Program,
  dataDir: string,
  reaper: Reaper,
  initialise: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = resolve(dataDir)
  const cluster = join(folder, clusterName)
  const unusable = (why: string, cause?: unknown) => new DataFolderUnusable(folder, why, cause)
  await mkdir(folder, { recursive: true }).catch((cause) => {
    throw unusable(`it cannot be made (${cause.message})`, cause)
  })
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch((cause) => {
    if (cause.code === 'ENOENT') return undefined
    throw unusable(`what is there cannot be read (${cause.message}). Name another folder`, cause)
  })
  const majorVersion = await readMajorVersion(program, folder)
  if (version?.trim() === majorVersion) return cluster
  if (version !== undefined)
    throw unusable(
      `they are of PostgreSQL ${version.trim()}, and this outboxd brings ${majorVersion}. Start it with the outboxd that made them, or name another folder`,
    )
  const others = (await readdir(folder)).filter((name) => !name.startsWith(unfinishedName))
  if (others.length > 0)
    throw unusable(
      `it has ${others[0]} in it, which does not belong to a sandbox. Name a folder that is empty or does not exist`,
    )
  await chownTo(folder, program.owner) // it has to get into it
  const unfinished = await mkdtemp(join(folder, unfinishedName))
  reaper.addFolder(unfinished)
  await chownTo(unfinished, program.owner)
  await initialise(unfinished).catch((cause) => {
    throw unusable(`no database can be made there (${cause.message})`, cause)
  })
  await chmod(unfinished, 0o700)
  await rename(unfinished, cluster).catch(async (cause) => {
    if (cause.code !== 'ENOTEMPTY' && cause.code !== 'EEXIST') throw cause
    await rm(unfinished, { recursive: true, force: true }) // another sandbox was quicker
  })
  return cluster
}

export async function recordProcessUsing(dataDir: string): Promise<void> {
  await writeFile(join(dataDir, userName), `${process.pid}\n`)
}

/** Names the process that uses the data. Undefined if it has ended, because its server is about to end, too. */
export async function describeProcessUsing(dataDir: string): Promise<string | undefined> {
  const pid = Number(await readFile(join(dataDir, userName), 'utf8').catch(() => '0'))
  try {
    return pid > 0 && process.kill(pid, 0) ? `process ${pid}` : undefined
  } catch {
    return undefined
  }
}
