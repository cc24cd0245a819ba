import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  chownTo,
  type PostgresProgram,
  preparePostgresProgram,
  runInitdb,
  type ServerOptions,
  ServerStartFailed,
  startServer,
  stopServer,
} from './postgresServer.ts'
import { type Reaper, startReaper } from './reaper.ts'

export interface PrivatePostgres {
  /** The URL has no password, because only this account and root can enter the folder with the socket. */
  readonly url: string
  readonly pid: number
  /** Resolves with the reason and the last output if the server ends before `stop`. */
  readonly failed: Promise<string>
  stop(): Promise<void>
}

const everySettings = { listen_addresses: '', unix_socket_permissions: '0700' }

const trust = ['--auth-local=trust', '--auth-host=reject']

const temporarySettings = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }

/** On macOS, a socket's path has at most 103 bytes. The part after the temporary folder takes 41. */
const temporaryFolderLengthMax = 60

const previousServerWaitMs = 10_000

/** Delay before the server's end counts as a failure: a signal to the process group may end it just before `stop`. */
const unexpectedEndDelayMs = 100

const lastWordsMax = 2000

/**
 * Starts a PostgreSQL that ends with this process, even if this process is killed.
 * @param dataDir without it, the data are removed at the end
 * @throws Error that names the missing package, or quotes the server's log
 */
export async function startPrivatePostgres(dataDir?: string): Promise<PrivatePostgres> {
  await using stack = new AsyncDisposableStack()
  const reaper = startReaper()
  stack.defer(() => reaper.done())
  const folder = await mkdtemp(
    join(tmpdir().length > temporaryFolderLengthMax ? '/tmp' : tmpdir(), 'outboxd-postgres-'),
  )
  reaper.addFolder(folder)
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const program = await preparePostgresProgram(folder)
  const isKept = dataDir !== undefined
  const cluster = isKept
    ? await findOrCreateCluster(program, resolve(dataDir), reaper, folder)
    : await createTemporaryCluster(program, folder)
  const end = isKept ? 'SIGINT' : 'SIGQUIT'
  let pid = 0
  const onStart = (started: number) => {
    if (pid !== 0) reaper.removeProcess(pid) // of an earlier attempt, which found the data in use
    reaper.addProcess(started, end)
    pid = started
  }
  const settings = { ...everySettings, ...(isKept ? {} : temporarySettings) }
  const server = await startWhenFree(program, { dataDir: cluster, folder, settings, detached: true, onStart })
  let lastWords = ''
  server.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-lastWordsMax)
  })
  const { promise: failed, resolve: fail } = Promise.withResolvers<string>()
  let isStopping = false
  server.once('exit', async (code, signal) => {
    await delay(unexpectedEndDelayMs, undefined, { ref: false })
    if (!isStopping)
      fail(`the sandbox's PostgreSQL ended (${signal ?? `exit code ${code}`}). Its last output: ${lastWords.trim()}`)
  })
  stack.defer(async () => {
    isStopping = true
    await stopServer(server, end)
    reaper.removeProcess(pid)
  })
  const all = stack.move()
  return {
    url: `postgres://postgres@localhost:5432/postgres?host=${encodeURIComponent(folder)}&sslmode=disable`,
    pid,
    failed,
    stop: () => all.disposeAsync(),
  }
}

async function createTemporaryCluster(program: PostgresProgram, folder: string): Promise<string> {
  const cluster = join(folder, 'data')
  // WAL segments are small, because filling one of 16 MB with zeros takes longer than all other steps.
  await runInitdb(program, cluster, [...trust, '--no-sync', '--wal-segsize=1'], folder)
  return cluster
}

/** A new cluster gets its name only when complete, so that a killed process leaves no half cluster. */
async function findOrCreateCluster(
  program: PostgresProgram,
  dataDir: string,
  reaper: Reaper,
  folder: string,
): Promise<string> {
  const cluster = join(dataDir, 'postgres')
  if (existsSync(cluster)) return cluster
  await mkdir(dataDir, { recursive: true })
  await chownTo(dataDir, program.account) // so that the account can enter the folder
  const unfinished = await mkdtemp(join(dataDir, 'unfinished-'))
  reaper.addFolder(unfinished)
  await chownTo(unfinished, program.account)
  await runInitdb(program, unfinished, trust, folder)
  await chmod(unfinished, 0o700)
  await rename(unfinished, cluster)
  return cluster
}

/** If the data are in use, waits until the server of a killed sandbox has ended. */
async function startWhenFree(program: PostgresProgram, options: ServerOptions): Promise<ChildProcess> {
  const givesUpMs = performance.now() + previousServerWaitMs
  for (;;) {
    try {
      return await startServer(program, options)
    } catch (error) {
      const isInUse =
        error instanceof ServerStartFailed &&
        /"postmaster\.pid" already exists|shared memory block .*is still in use/.test(error.log)
      if (!isInUse || performance.now() > givesUpMs) throw error
      await delay(100)
    }
  }
}
