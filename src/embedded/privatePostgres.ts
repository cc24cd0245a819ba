import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DataFolderUnusable, openKeptCluster, readUser, writeUser } from './keptCluster.ts'
import { endServer, initialise, openProgram, type Program, ServerEnded, startServer } from './postgresServer.ts'
import { type Reaper, startReaper } from './reaper.ts'

/** A PostgreSQL that this process has to itself. */
export interface PrivatePostgres {
  /** Its address, for this account and root alone: a socket in a folder that is closed to all others, so it has no password. */
  readonly url: string
  readonly pid: number
  /** Ends the server, and removes what need not be kept. */
  stop(): Promise<void>
}

/** Nobody reaches it by the network. */
const everySettings = { listen_addresses: '', unix_socket_permissions: '0700' }

/** What need not survive a power cut. */
const temporarySettings = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }

/** The path of a socket has a bound, 103 bytes on macOS; the rest of it takes 41. */
const folderLengthMax = 60

/** A server whose sandbox was killed is ended by its reaper: so long it may take. */
const leavingMs = 10_000

/**
 * Starts a PostgreSQL that ends with this process, whatever ends it.
 *
 * @param dataDir where its data stay; without it they are in a temporary folder, and are gone at the end
 * @throws DataFolderUnusable; Error naming the missing package where this platform has no binaries, or quoting the server's words
 */
export async function startPrivatePostgres(dataDir?: string): Promise<PrivatePostgres> {
  await using stack = new AsyncDisposableStack()
  const reaper = startReaper()
  stack.defer(() => reaper.done())
  const folder = await mkdtemp(join(tmpdir().length > folderLengthMax ? '/tmp' : tmpdir(), 'outboxd-postgres-'))
  reaper.addFolder(folder)
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const program = await openProgram(folder)
  const pid = await (dataDir === undefined
    ? startTemporary(stack, program, reaper, folder)
    : startKept(stack, program, reaper, folder, dataDir))
  const all = stack.move()
  return {
    url: `postgres://postgres@localhost/postgres?host=${encodeURIComponent(folder)}`,
    pid,
    stop: () => all.disposeAsync(),
  }
}

async function startTemporary(
  stack: AsyncDisposableStack,
  program: Program,
  reaper: Reaper,
  folder: string,
): Promise<number> {
  const cluster = join(folder, 'data')
  // A small first segment of the log: to write 16 MB of zeros takes longer than all that is to come.
  await initialise(program, cluster, [...trust, '--no-sync', '--no-data-checksums', '--wal-segsize=1'], folder)
  return start(stack, program, reaper, { folder, cluster, settings: temporarySettings, end: 'SIGQUIT' })
}

async function startKept(
  stack: AsyncDisposableStack,
  program: Program,
  reaper: Reaper,
  folder: string,
  dataDir: string,
): Promise<number> {
  const cluster = await openKeptCluster(program, dataDir, reaper, (unfinished) =>
    initialise(program, unfinished, trust, folder),
  )
  const givesUpMs = performance.now() + leavingMs
  for (;;) {
    try {
      const pid = await start(stack, program, reaper, { folder, cluster, settings: {}, end: 'SIGINT' })
      await writeUser(dataDir)
      return pid
    } catch (error) {
      if (!(error instanceof ServerEnded) || !isInUse.test(error.said)) throw error
      const user = await readUser(dataDir)
      if (user !== undefined || performance.now() > givesUpMs)
        throw new DataFolderUnusable(
          dataDir,
          `${user ?? 'a PostgreSQL'} uses it. Stop that one, or name another folder`,
        )
      await delay(100)
    }
  }
}

const isInUse = /"postmaster\.pid" already exists|shared memory block .*is still in use/

const trust = ['--auth-local=trust', '--auth-host=reject']

async function start(
  stack: AsyncDisposableStack,
  program: Program,
  reaper: Reaper,
  {
    folder,
    cluster,
    settings,
    end,
  }: { folder: string; cluster: string; settings: Record<string, string>; end: 'SIGQUIT' | 'SIGINT' },
): Promise<number> {
  const server = await startServer(program, {
    dataDir: cluster,
    folder,
    settings: { ...everySettings, ...settings },
    detached: true,
    onStart: (pid) => reaper.addProcess(pid, end),
  })
  const pid = server.pid as number
  stack.defer(async () => {
    await endServer(server, end)
    reaper.removeProcess(pid)
  })
  return pid
}
