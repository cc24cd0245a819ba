import type { State } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'
import { mayBeEmptied, mayGo } from './pruneBatch.ts'

/** How long things are kept, in days. Null: for ever, or, of payloads, as long as the submission. */
export interface Retention {
  days: number | null
  payloadDays: number | null
}

/** What would go now, of one state and age. */
export interface PrunableCount {
  state: State
  /** In whole days since it ended. */
  ageDays: number
  submissions: number
  /** Of these whose contents go and the rest stays. */
  toEmpty: number
}

/** What would go now, by state and age. */
export async function countPrunable(db: Database, { days, payloadDays }: Retention): Promise<PrunableCount[]> {
  const { rows } = await db.query<PrunableCount>(
    // Two branches, as there is an index for each. now() and not clock_timestamp(), which bounds no index scan.
    `select state, floor(extract(epoch from now() - ended_at) / 86400)::int as "ageDays",
       count(*) filter (where goes)::int as submissions, count(*) filter (where not goes)::int as "toEmpty"
     from (
       select state, ended_at, true as goes from outboxd.submission
       where ${mayGo} and ended_at < now() - $1::float8 * interval '1 day'
       union all
       select state, ended_at, false from outboxd.submission
       where ${mayBeEmptied} and ended_at < now() - $2::float8 * interval '1 day'
         and coalesce(ended_at >= now() - $1::float8 * interval '1 day', true)
     ) due group by 1, 2 order by 2 desc, 1`,
    [days, payloadDays],
  )
  return rows
}

/** For how long the oldest that should have gone, or been emptied, has been due, milliseconds; 0 where none is. */
export async function readPruneOverdueMs(db: Database, { days, payloadDays }: Retention): Promise<number> {
  const { rows } = await db.query<{ overdueMs: number }>(
    `select greatest(0, extract(epoch from greatest(
       now() - (select min(ended_at) from outboxd.submission where ${mayGo}) - $1::float8 * interval '1 day',
       now() - (select min(ended_at) from outboxd.submission where ${mayBeEmptied}) - $2::float8 * interval '1 day'
     )))::float8 * 1000 as "overdueMs"`,
    [days, payloadDays],
  )
  return rows[0]?.overdueMs ?? 0
}
