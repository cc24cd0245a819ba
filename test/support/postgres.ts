import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { preparePostgresProgram, runInitdb, startServer, stopServer } from '../../src/embedded/postgresServer.ts'
import { startReaper } from '../../src/embedded/reaper.ts'
import { migrateLedger } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { freePort } from './freePort.ts'

/** Binaries of Debian's postgresql-15. .ci/run installs the package; elsewhere it may be missing. */
export const debian15 = '/usr/lib/postgresql/15/bin'

/** A PostgreSQL in a temporary folder, on loopback, for tests and benchmarks. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** `postgres://` URL of the maintenance database, with password. */
  readonly url: string
  readonly port: number
  readonly pid: number
  /** The folder of its data. `stop` removes it. */
  readonly folder: string
  /** Ends the server like a power cut (SIGQUIT), and starts it again with the same port and data. */
  restartImmediately(): Promise<void>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
}

/**
 * Starts a PostgreSQL that ends with this process, even if this process is killed, because a reaper watches.
 *
 * @param settings server settings on top of the defaults, such as `{ fsync: 'off' }`
 * @param binDir  folder with binaries of a different PostgreSQL, instead of those from npm
 * @throws Error naming the missing package if this platform has no binaries, or with the server's output
 */
export async function startPostgres(settings: Record<string, string> = {}, binDir?: string): Promise<EmbeddedPostgres> {
  const reaper = startReaper()
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-postgres-'))
  reaper.addFolder(folder)
  const remove = async () => {
    await rm(folder, { recursive: true, force: true })
    await reaper.done()
  }
  try {
    const program = await preparePostgresProgram(folder, binDir)
    const dataDir = join(folder, 'data')
    const passwordFile = join(folder, 'password')
    await writeFile(passwordFile, 'postgres\n', { mode: 0o644 })
    await runInitdb(program, dataDir, ['--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--no-sync'], folder)
    const port = await freePort()
    const defaults = { port: String(port), max_connections: '300', jit: 'off' } // as in outboxd's sessions; Debian's default is on
    const options = { dataDir, folder, settings: { ...defaults, ...settings } }
    const start = async () => {
      const started = await startServer(program, options)
      reaper.addProcess(started.pid as number, 'SIGQUIT')
      return started
    }
    let server = await start()
    const stop = async () => {
      await stopServer(server, 'SIGINT')
      await remove()
    }
    return {
      url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres?sslmode=disable`,
      port,
      folder,
      get pid() {
        return server.pid as number
      },
      async restartImmediately() {
        reaper.removeProcess(server.pid as number)
        await stopServer(server, 'SIGQUIT')
        server = await start()
      },
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await remove()
    throw error
  }
}

/**
 * Creates a database on a server.
 *
 * @param options more of CREATE DATABASE, such as a template or an encoding
 * @returns its address
 */
export async function createDatabaseOn(server: string, name: string, options = ''): Promise<string> {
  await execute(server, `create database ${pg.escapeIdentifier(name)} ${options}`)
  return Object.assign(new URL(server), { pathname: `/${name}` }).href
}

export async function dropDatabase(url: string, server: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await execute(server, `drop database if exists ${pg.escapeIdentifier(name)} with (force)`)
}

/** Migrates as `outboxd migrate --outbox` does: the schemas of ledger and queue, and a table named `outbox`. */
export async function migrateAll(url: string): Promise<void> {
  await migrateLedger(url)
  await migrateOutbox(url, 'outbox')
}

/** Opens a pool that ignores the loss of its server, because tests check the consequence elsewhere. */
export function openPool(url: string, settings: Omit<pg.PoolConfig, 'connectionString'> = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 10, ...settings })
  pool.on('error', () => {})
  return pool
}

const administrators = new Map<string, pg.Pool>()

/** Uses one session for all statements of this process, because each of a thousand databases needs two statements. */
async function execute(server: string, statement: string): Promise<void> {
  const administrator = administrators.get(server) ?? openPool(server, { max: 1, allowExitOnIdle: true })
  administrators.set(server, administrator)
  await administrator.query(statement)
}
