import type { Database } from '../postgres/database.ts'

export type KeyOnFailure = 'continue' | 'block'

/**
 * Locks submissions until the transaction ends, in one order, so that nobody waits for another in a circle.
 *
 * @returns their keys as they are now
 */
export async function lockSubmissions(
  db: Database,
  submissions: readonly { id: string }[],
): Promise<{ key: string | null }[]> {
  const { rows } = await db.query<{ key: string | null }>(
    'select key from outboxd.submission where id = any($1::uuid[]) order by id for update',
    [submissions.map(({ id }) => id)],
  )
  return rows
}

/**
 * Makes everyone who appends records of these keys, or lets their next ones go, take turns until the transaction ends.
 * Without it a record captured while its predecessor is being accepted could be held with nobody left to release it.
 * Sorted, so that two batches never wait for each other in a circle.
 */
export async function lockKeys(db: Database, keys: readonly string[]): Promise<void> {
  await db.query(
    `select pg_advisory_xact_lock(7162, line) from (
       select distinct hashtext(key) as line from unnest($1::text[]) key order by line
     ) lines`,
    [keys],
  )
}

/**
 * Lets the first record of each key's line go, if it is waiting and nothing before it blocks: queued and sending ones
 * do, uncertain ones always, failed and rejected ones under `block`.
 *
 * @returns how many were released
 */
export async function releaseNext(db: Database, keys: readonly string[], onFailure: KeyOnFailure): Promise<number> {
  const { rowCount } = await db.query(releaseSql[onFailure], [keys])
  return rowCount ?? 0
}

/** Runs `work` while the lines of these records are ours, and lets their heads go after it. */
export async function inLines<T>(
  db: Database,
  records: readonly { key: string | null }[],
  onFailure: KeyOnFailure,
  work: () => Promise<T>,
): Promise<T> {
  const keys = [...new Set(records.flatMap(({ key }) => key ?? []))]
  if (keys.length === 0) return work()
  await lockKeys(db, keys)
  const result = await work()
  await releaseNext(db, keys, onFailure)
  return result
}

/** Lines looked at in one round. */
const linesMax = 1_000

/**
 * Lets records go that wait though nothing before them blocks any more: KEY_ON_FAILURE may have changed since. In a
 * transaction.
 *
 * @returns how many
 */
export async function releaseWaitingKeys(db: Database, onFailure: KeyOnFailure): Promise<number> {
  const { rows } = await db.query<{ key: string }>(
    `select distinct key from outboxd.submission where state = 'queued' and held and key is not null limit $1`,
    [linesMax],
  )
  const keys = rows.map(({ key }) => key)
  if (keys.length === 0) return 0
  await lockKeys(db, keys)
  return releaseNext(db, keys, onFailure)
}

/** The states in which a record waits for a person and holds back those behind it. */
export const stoppingStates: Record<KeyOnFailure, string> = {
  continue: `'uncertain'`,
  block: `'uncertain', 'failed', 'rejected'`,
}

/**
 * The states of a record that hold back those behind it, as literals so that the planner can prove that the partial
 * index submission_line fits.
 */
export const blockingStates: Record<KeyOnFailure, string> = {
  continue: `'queued', 'sending', ${stoppingStates.continue}`,
  block: `'queued', 'sending', ${stoppingStates.block}`,
}

const release = (blocking: string) => `
  with head as (
    select first.* from unnest($1::text[]) line(key), lateral (
      select s.id, s.state, s.held from outboxd.submission s
      where s.key = line.key and s.state in (${blocking}) order by s.seq limit 1
    ) first
  )
  update outboxd.submission s set held = false from head
  where s.id = head.id and head.held and head.state = 'queued' and s.held and s.state = 'queued'`

const releaseSql: Record<KeyOnFailure, string> = {
  continue: release(blockingStates.continue),
  block: release(blockingStates.block),
}
