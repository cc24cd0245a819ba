import type { Database } from '../../postgres/database.ts'
import { firstLook } from './forgetIds.ts'

/** What may go: completed or discarded, and its row has been told so. Everything else waits for somebody. */
export const mayGo = `state in ('completed', 'discarded') and not report_due`

/** Its events are in the logs' chain: those that are not are not deleted. */
const isChained = `not exists (select from outboxd.submission_event e where e.submission_id = submission.id
  and e.id > coalesce((select last_event from outboxd.chain_block order by number desc limit 1), 0))`

/** One whose transaction a person has named keeps its contents: that can be taken back, and it is sent again then. */
export const mayBeEmptied = `${mayGo} and not id_by_person and emptied_at is null`

/** How a batch is bounded. */
export interface Batch {
  /** Only what ended so many days ago, by the database's clock. */
  olderThanDays: number
  limit: number
}

/** How many of the oldest are looked at for each that goes. */
const oldestPerRow = 10

/** $1 is how many days ago they ended at least. */
const isOld = `ended_at < now() - $1 * interval '1 day'`

/**
 * Deletes the submissions that ended longest ago, with their events. Of those whose row may be met again, that of the
 * outbox that is served, what tells the row again stays.
 *
 * In a transaction that holds the lock of capture (7161): a row that is taken at this moment would otherwise be found neither here nor there.
 * What somebody has locked is left for the next time.
 *
 * @returns how many
 */
export async function pruneBatch(db: Database, { olderThanDays, limit }: Batch): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    // Entries are chained by their age. To look for chained ones among all that are due, while the chain is far behind, took
    // seconds; a few of the oldest may have a younger entry.
    `with oldest as materialized (
       select id from outboxd.submission where ${mayGo} and ${isOld}
       order by ended_at limit ${oldestPerRow} * $2
     ), chained as materialized (
       select id from oldest submission where ${isChained} limit $2
     ), due as (
       select s.id from chained join outboxd.submission s using (id)
       where ${mayGo} and ${isOld} for update of s skip locked
     ), gone as (
       delete from outboxd.submission s using due where s.id = due.id
       returning s.outbox_id, s.outbox, s.id, s.type, s.row_stamp, s.recorded_at, s.state, s.ended_at, s.transaction_id
     ), unmarked as (
       update outboxd.history h set marked_event = null
       where exists (select from outboxd.submission_event e join gone on gone.id = e.submission_id where e.id = h.marked_event)
     ), remembered as (
       insert into outboxd.pruned_submission (outbox_id, outbox, id, type, row_stamp, recorded_at, state, ended_at,
         transaction_id, look_at)
       select s.*, ${firstLook} from gone s where outbox = outboxd.current_outbox()
       on conflict (outbox_id, outbox) do nothing
     )
     select count(*)::int as n from gone`,
    [olderThanDays, limit],
  )
  return rows[0]?.n ?? 0
}

/**
 * Empties payload, body and result of the submissions that ended longest ago, and what their events keep of these.
 *
 * @returns how many
 */
export async function emptyBatch(db: Database, { olderThanDays, limit }: Batch): Promise<number> {
  const { rows } = await db.query<{ id: string }>(
    `with due as (
       select id from outboxd.submission where ${mayBeEmptied} and ${isOld} order by ended_at limit $2 for update skip locked
     )
     update outboxd.submission s set payload = null, body = null, result = null, emptied_at = clock_timestamp()
     from due where s.id = due.id returning s.id`,
    [olderThanDays, limit],
  )
  // A statement of its own: the log allows it where it sees that the submission is empty.
  if (rows.length > 0)
    await db.query(
      `update outboxd.submission_event set detail = outboxd.without_contents(detail)
       where submission_id = any($1::uuid[]) and detail is distinct from outboxd.without_contents(detail)`,
      [rows.map(({ id }) => id)],
    )
  return rows.length
}
