import type { Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'

/** A ledger in the outbox's own database that is not ours, made by a daemon without STATE_DATABASE_URL. */
export interface SecondLedger {
  /** Counted up to `countMax`. */
  records: number
  open: number
}

const countMax = 10_000

export async function findSecondLedger(
  db: Database,
  ourLedgerId: string,
  tableName: string,
): Promise<SecondLedger | null> {
  const [found] = await readSecondLedger<SecondLedger & { serves: boolean }>(
    db,
    ourLedgerId,
    `select exists (select from outboxd.outbox where table_name = $1) as serves, count(*)::int as records,
       (select count(*)::int from (select from outboxd.submission where state in ('queued', 'sending', 'accepted', 'uncertain') limit $2) o) as open
     from (select from outboxd.submission limit $2) counted`,
    [tableName, countMax],
  )
  return found?.serves && found.records > 0 ? { records: found.records, open: found.open } : null
}

export async function findIdsCapturedBySecondLedger(
  db: Database,
  ourLedgerId: string,
  outboxIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await readSecondLedger<{ id: string }>(
    db,
    ourLedgerId,
    `select outbox_id as id from outboxd.submission where outbox_id = any($1)
     union select outbox_id from outboxd.pruned_submission where outbox_id = any($1)`,
    [outboxIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/** Returns no rows if the database has no other ledger, or our role may not read it. A moved ledger has the same id. */
async function readSecondLedger<R extends object>(
  db: Database,
  ourLedgerId: string,
  sql: string,
  values: unknown[],
): Promise<R[]> {
  try {
    const { rows: there } = await db.query(`select where to_regclass('outboxd.ledger') is not null`)
    if (there.length === 0) return []
    const { rows: ids } = await db.query<{ id: string }>('select id::text from outboxd.ledger')
    return ids[0]?.id === ourLedgerId ? [] : (await db.query<R>(sql, values)).rows
  } catch (error) {
    if (errorCodeOf(error) === '42501') return []
    throw error
  }
}

export function secondLedgerMessage({ records, open }: SecondLedger): string {
  const many = records >= countMax ? `${countMax} or more records` : `${records} records`
  return `the outbox's own database has a second ledger (schema outboxd) that captured ${many} of this outbox; ${open} of them have not ended (\`outboxd list --state queued,sending,accepted,uncertain\` without STATE_DATABASE_URL shows them). A daemon without STATE_DATABASE_URL made this ledger, and \`recover\` leaves out the rows that it captured. With \`state: none\`, first run \`outboxd adopt --same --start id:N\`, where N is the first row that the second ledger has not sent: otherwise our ledger sends those rows again. When all have ended, drop the schemas outboxd and pgboss there`
}
