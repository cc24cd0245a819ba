import pg from 'pg'
import { type Database, DatabaseUnusable, withDatabase } from './database.ts'
import { watchLocks } from './locks.ts'
import { encodingWarning, readEncoding, refusedEncoding } from './serverEncoding.ts'
import { applySessionSettings, catalogPathSettings, statementSettings, textSettings } from './sessionSettings.ts'
import { isLockTimeout } from './sqlState.ts'

/** All who use a table wait behind a change of it that waits for a lock. */
const lockMaxSeconds = 10

const sessionName = 'outboxd migrate schema'

/**
 * Runs `work` on a connection on which statements may take long, but do not wait long for locks.
 *
 * @throws DatabaseUnusable that says what is in the way
 */
export function inMigrationSession<T>(
  variable: string,
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  return withDatabase(variable, url, async () => {
    const client = new pg.Client({
      connectionString: url,
      application_name: sessionName,
      connectionTimeoutMillis: 5_000,
    })
    await using locks = watchLocks(url, sessionName)
    client.on('error', () => {}) // the statement that runs says so
    try {
      await client.connect()
      // A pooler's session, in which nothing is migrated, is not ours to change.
      if (await applySessionSettings(client)) {
        const limits = {
          statement_timeout: '0',
          idle_in_transaction_session_timeout: '0',
          lock_timeout: `${lockMaxSeconds}s`,
        }
        await client.query('select set_config(key, value, false) from json_each_text($1)', [
          JSON.stringify({
            ...statementSettings,
            ...textSettings,
            ...limits,
            ...(variable === 'STATE_DATABASE_URL' && catalogPathSettings),
          }),
        ])
      }
      await assertEncoding(client, variable, url)
      return await work(client)
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      const [holder] = locks.holders()
      const which = holder?.pid
        ? `select pg_terminate_backend(${holder.pid})`
        : `select pid, application_name, query from pg_stat_activity where xact_start < now() - interval '10 s' finds it`
      const why = `another session has held a lock that is needed for ${lockMaxSeconds} s. Nothing was changed by the step that waited: end that session (${which}), and run it again`
      throw new DatabaseUnusable(variable, url, why, error)
    } finally {
      await client.end()
    }
  })
}

/** Null if it is UTF8. */
export const readEncodingWarning = (variable: string, url: string): Promise<string | null> =>
  inMigrationSession(variable, url, async (client) => encodingWarning(await readEncoding(client)))

export async function assertEncoding(db: Pick<Database, 'query'>, variable: string, url: string): Promise<void> {
  const refusal = refusedEncoding(await readEncoding(db))
  if (refusal !== null) throw new DatabaseUnusable(variable, url, refusal)
}
