import type { Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'

/** A ledger in the outbox's own database that is not ours, made by a daemon without STATE_DATABASE_URL. */
export interface SecondLedger {
  /** Counted up to `countMax`. */
  records: number
  /** The records that have not ended. */
  open: number
}

const countMax = 10_000

export async function findSecondLedger(db: Database, ours: string, table: string): Promise<SecondLedger | null> {
  if (!(await isThere(db, ours))) return null
  const found = await orUnseen(() =>
    db.query<SecondLedger & { serves: boolean }>(
      `select exists (select from outboxd.outbox where table_name = $1) as serves, count(*)::int as records,
         count(*) filter (where state in ('queued', 'sending', 'accepted', 'uncertain'))::int as open
       from (select state from outboxd.submission limit $2) counted`,
      [table, countMax],
    ),
  )
  const row = found?.rows[0]
  return row?.serves && row.records > 0 ? { records: row.records, open: row.open } : null
}

export async function findCapturedBySecondLedger(
  db: Database,
  ours: string,
  outboxIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (outboxIds.length === 0 || !(await isThere(db, ours))) return new Set()
  const found = await orUnseen(() =>
    db.query<{ id: string }>(
      `select outbox_id as id from outboxd.submission where outbox_id = any($1)
       union select outbox_id from outboxd.pruned_submission where outbox_id = any($1)`,
      [outboxIds],
    ),
  )
  return new Set(found?.rows.map(({ id }) => id))
}

/** Returns whether the database has a ledger that is not ours. A ledger that was moved keeps its id. */
async function isThere(db: Database, ours: string): Promise<boolean> {
  const seen = await orUnseen(() =>
    db.query<{ hasRecords: boolean; hasId: boolean }>(
      `select to_regclass('outboxd.submission') is not null as "hasRecords", to_regclass('outboxd.ledger') is not null as "hasId"`,
    ),
  )
  const { hasRecords = false, hasId = false } = seen?.rows[0] ?? {}
  if (!hasRecords || !hasId) return hasRecords
  const ids = await orUnseen(() => db.query<{ id: string }>('select id::text from outboxd.ledger'))
  return ids !== null && ids.rows[0]?.id !== ours
}

async function orUnseen<T>(look: () => Promise<T>): Promise<T | null> {
  try {
    return await look()
  } catch (error) {
    if (errorCodeOf(error) === '42501') return null
    throw error
  }
}

export function secondLedgerMessage({ records, open }: SecondLedger): string {
  const many = records >= countMax ? `${countMax} or more records` : `${records} records`
  return `the outbox's own database has a second ledger (schema outboxd) that captured ${many} of this outbox; ${open} of them have not ended. A daemon without STATE_DATABASE_URL made it, and \`recover\` leaves its rows out. With \`state: none\`, first run \`outboxd adopt --same --start id:N\`, where N is the first row that the second ledger has not sent: otherwise this ledger sends its rows again. \`outboxd list\` without STATE_DATABASE_URL shows them. When all have ended, drop the schemas outboxd and pgboss there`
}
