import type pg from 'pg'
import { type Database, DatabaseUnusable, longTransactionsSql, withConnectionErrorsExplained } from './database.ts'
import { sessionNameOf } from './ledgerSchema.ts'
import { sessionEndCost } from './locks.ts'
import { findEncodingRefusalClause, findEncodingWarningClause, readServerEncoding } from './serverEncoding.ts'
import { LedgerClient } from './sessionPool.ts'
import { applySessionSettings, catalogSearchPathSettings } from './sessionSettings.ts'
import { isLockTimeout } from './sqlState.ts'

/** Limits the wait for a lock, because all users of the table wait behind this session. */
const lockMaxSeconds = 10

const pooledClause =
  'it answers through a pooler, whose sessions have what other clients set. Put the address of the server itself into DATABASE_URL for this command'

const sessionName = 'outboxd migrate schema'

/**
 * Runs `work` without a statement timeout but with a short lock timeout.
 *
 * @param searchPath `role` for statements that name tables of the ERP without a schema
 * @throws DatabaseUnusable, also behind a pooler
 */
export function inMigrationSession<T>(
  url: string,
  searchPath: 'catalog' | 'role',
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  return withConnectionErrorsExplained(url, async () => {
    const client = new LedgerClient({
      connectionString: url,
      application_name: sessionNameOf(url, sessionName),
      connectionTimeoutMillis: 5_000,
    })
    client.on('error', () => {}) // the running statement reports the error
    try {
      await client.connect()
      const isOwnSession = await applySessionSettings(client, {
        statement_timeout: '0',
        idle_in_transaction_session_timeout: '0',
        lock_timeout: `${lockMaxSeconds}s`,
        ...(searchPath === 'catalog' && catalogSearchPathSettings),
      })
      if (!isOwnSession) throw new DatabaseUnusable(url, pooledClause)
      await assertEncodingIsUsable(client, url)
      return await work(client)
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      const why = `another session held a lock for more than ${lockMaxSeconds} s, so this step gave up and changed nothing. Find and end that session (\`${longTransactionsSql}\`), then run the command again. ${sessionEndCost}`
      throw new DatabaseUnusable(url, why, error)
    } finally {
      await client.end()
    }
  })
}

export const readEncodingWarningClause = (url: string): Promise<string | null> =>
  inMigrationSession(url, 'catalog', async (client) => findEncodingWarningClause(await readServerEncoding(client)))

export async function assertEncodingIsUsable(db: Pick<Database, 'query'>, url: string): Promise<void> {
  const refusal = findEncodingRefusalClause(await readServerEncoding(db))
  if (refusal !== null) throw new DatabaseUnusable(url, refusal)
}
