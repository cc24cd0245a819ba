import { type Database, inTransaction, type Pool } from '../postgres/database.ts'

/**
 * Locks rows in the order of their ids, to avoid deadlocks. A queued record is locked after its key, because the outcome
 * of the record before releases it.
 */
export async function lockSubmissionsAndReadKeys(
  db: Database,
  submissions: readonly { id: string }[],
): Promise<{ key: string | null }[]> {
  const { rows } = await db.query<{ key: string | null }>(
    `select key from outboxd.submission where id = any($1::uuid[]) and state <> 'queued' order by id for update`,
    [submissions.map(({ id }) => id)],
  )
  return rows
}

/**
 * Keeps other transactions from inserting or releasing records of these keys. Otherwise a record captured while its
 * predecessor is being accepted could stay held for ever. Locks in sorted order, to avoid deadlocks.
 */
export async function lockKeys(db: Database, keys: readonly string[]): Promise<void> {
  await db.query(
    `select pg_advisory_xact_lock(7162, line) from (
       select distinct hashtext('outboxd'::name || ' ' || key) as line from unnest($1::text[]) key order by line
     ) lines`,
    [keys],
  )
}

/**
 * Releases each key's first held record if no earlier record blocks it. A held record is queued (a CHECK). To say so here
 * would let the planner read all queued records for each key.
 */
async function releaseFirstRecordsOfKeys(db: Database, keys: readonly string[]): Promise<number> {
  const { rowCount } = await db.query(
    `with head as (
       select first.* from unnest($1::text[]) line(key), lateral (
         select s.id, s.held from outboxd.submission s
         where s.key = line.key and ${blocksKeySql('s')} order by s.seq limit 1
       ) first
     )
     update outboxd.submission s set held = false from head
     where s.id = head.id and head.held and s.held`,
    [keys],
  )
  return rowCount ?? 0
}

export async function withKeysLockedThenReleased<T>(
  db: Database,
  records: readonly { key: string | null }[],
  work: () => Promise<T>,
): Promise<T> {
  const keys = [...new Set(records.flatMap(({ key }) => key ?? []))]
  if (keys.length === 0) return work()
  await lockKeys(db, keys)
  const result = await work()
  await releaseFirstRecordsOfKeys(db, keys)
  return result
}

/** Keys of one round. */
const keysMax = 1_000

/**
 * Releases records that a change of KEY_ON_FAILURE unblocks.
 *
 * @param fromKey the last key of the round before; '' to begin
 * @returns `lastKey` is '' if no keys are left
 */
export async function releaseUnblockedRecords(
  pool: Pool,
  fromKey = '',
): Promise<{ released: number; lastKey: string }> {
  const { rows } = await pool.query<{ key: string }>(
    `select distinct key from outboxd.submission where state = 'queued' and held and key >= $2 order by key limit $1`,
    [keysMax, fromKey],
  )
  const keys = rows.map(({ key }) => key)
  if (keys.length === 0) return { released: 0, lastKey: '' }
  const released = await inTransaction(pool, async (db) => {
    await lockKeys(db, keys)
    return releaseFirstRecordsOfKeys(db, keys)
  })
  return { released, lastKey: keys.length < keysMax ? '' : (keys.at(-1) ?? '') }
}

/** True if KEY_ON_FAILURE is `block` in the ledger's settings, so that commands and daemons keep one order. */
const isKeyBlockedByFailureSql = `(select settings ->> 'KEY_ON_FAILURE' = 'block' from outboxd.ledger)`

/**
 * True if the record blocks later records of its key. Lists all states as literals, so that the planner can use the
 * partial index submission_line.
 */
export const blocksKeySql = (alias: string) =>
  `${alias}.state in ('queued', 'sending', 'uncertain', 'failed', 'rejected')
     and (${alias}.state not in ('failed', 'rejected') or ${isKeyBlockedByFailureSql})`
