import pg from 'pg'
import { startReaper } from '../../src/embedded/reaper.ts'
import { migrateLedger } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embeddedPostgres.ts'

/** Binaries of Debian's postgresql-15. .ci/run installs the package; elsewhere it may be missing. */
export const debian15 = '/usr/lib/postgresql/15/bin'

/** Starts a PostgreSQL that ends with this process, even if this process is killed, because a reaper watches. */
export async function startPostgres(
  settings: Record<string, string> = {},
  binDir?: string,
): Promise<EmbeddedPostgres & AsyncDisposable> {
  const reaper = startReaper()
  const server = await startEmbeddedPostgres(settings, binDir).catch(async (error: unknown) => {
    await reaper.done()
    throw error
  })
  reaper.addProcess(server.pid, 'SIGQUIT')
  reaper.addFolder(server.folder)
  const stop = async () => {
    await server.stop()
    await reaper.done()
  }
  return {
    url: server.url,
    port: server.port,
    folder: server.folder,
    get pid() {
      return server.pid
    },
    async restartImmediately() {
      reaper.removeProcess(server.pid)
      await server.restartImmediately()
      reaper.addProcess(server.pid, 'SIGQUIT')
    },
    stop,
    [Symbol.asyncDispose]: stop,
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
