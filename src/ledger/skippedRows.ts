import type { CaptureAgenda, FailedRow } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { clearProblems, raiseProblems } from './problems.ts'
import { readServedRow, type ServedOutbox, toServed } from './servedOutbox.ts'

/** So many rows do not fail each for itself: the table or its description is wrong, and a person has to look. */
export class TooManyRowsSkipped extends Error {
  override name = 'TooManyRowsSkipped'
  constructor() {
    super(
      `${skippedMax} rows of the outbox are put off, so nothing more is captured: "outboxd status" names what they fail for`,
    )
  }
}

/** A row that was put off is one of the outbox that is served now: another may have a row of its id. */
export const isOfServed = 'outbox = outboxd.current_outbox()'
const isIt = `hashtextextended(outbox_id, 0) = hashtextextended($1, 0) and ${isOfServed}`

/** Claims leave these rows out by name, which must stay a short list. */
const skippedMax = 1_000
const firstRetryMs = 10_000
const retryMaxMs = 3_600_000

/**
 * Puts a row off: for 10 s, each time for twice as long, at most for an hour. Says so as a problem.
 *
 * @throws TooManyRowsSkipped
 */
export async function skipRow(db: Database, { outboxId, isCaptured, detail }: FailedRow): Promise<void> {
  const { rows } = await db.query<{ retryInMs: number }>(
    `insert into outboxd.skipped_row as s (outbox_id, captured, retry_at)
     select $1, $2, clock_timestamp() + $3 * interval '1 ms'
     where exists (select from outboxd.skipped_row where ${isIt})
       or (select count(*) from outboxd.skipped_row where ${isOfServed}) < $5
     on conflict (hashtextextended(outbox_id, 0), outbox) do update set captured = excluded.captured, times = s.times + 1,
       retry_at = clock_timestamp() + least($4, $3 * 2 ^ least(s.times, 20)) * interval '1 ms'
     returning extract(epoch from retry_at - clock_timestamp())::float8 * 1000 as "retryInMs"`,
    [outboxId, isCaptured, firstRetryMs, retryMaxMs, skippedMax],
  )
  const [skipped] = rows
  if (skipped === undefined) throw new TooManyRowsSkipped()
  await raiseProblems(db, [{ kind: 'row_skipped', subject: outboxId, detail, ...skipped }])
}

/** A row is through, or gone. */
export async function forgetSkipped(db: Database, outboxId: string): Promise<void> {
  await db.query(`delete from outboxd.skipped_row where ${isIt}`, [outboxId])
  await clearProblems(db, 'row_skipped', [outboxId])
}

/** What capture has to look after, whether or not the outbox has anything new. */
export interface Agenda extends Pick<CaptureAgenda, 'dueId' | 'leavesTypes'> {
  /** In which outbox to look for new rows. */
  served: ServedOutbox
}

/** In one statement: a daemon that has nothing to do asks this every second. */
export async function readAgenda(db: Database): Promise<Agenda> {
  const row = await readServedRow<Omit<Agenda, 'served'>>(
    db,
    `(select outbox_id from outboxd.skipped_row where ${isOfServed} and retry_at <= clock_timestamp() order by retry_at limit 1) as "dueId"`,
    `exists (select from outboxd.problem where kind = 'unknown_type') as "leavesTypes"`,
  )
  return { dueId: row.dueId, leavesTypes: row.leavesTypes, served: toServed(row) }
}
