import type { Database } from '../../postgres/database.ts'

/** An id is known for so long after the end of its record, whatever became of its row; and then for as long as the row is there. */
const knownDays = 366

/** When to look for the first time, of the pruned submission `s`. */
export const firstLook = `s.ended_at + interval '${knownDays} days'`

/** A row is looked for again after so long: one that is still there, and one that is gone for the first time. */
const lookAgainDays = 30

/** The pruned submissions whose rows are to be looked for; those of an outbox that is not served any more are forgotten at once. */
export async function takeLooks(db: Database, limit: number): Promise<{ outboxIds: string[]; forgotten: number }> {
  const { rows } = await db.query<{ outboxId: string; isServed: boolean }>(
    `with due as (
       select outbox_id, outbox from outboxd.pruned_submission where look_at <= now() order by look_at limit $1
     ), former as (
       delete from outboxd.pruned_submission p using due
       where p.outbox_id = due.outbox_id and p.outbox = due.outbox and p.outbox <> outboxd.current_outbox()
     )
     select outbox_id as "outboxId", outbox = outboxd.current_outbox() as "isServed" from due`,
    [limit],
  )
  const outboxIds = rows.flatMap(({ outboxId, isServed }) => (isServed ? [outboxId] : []))
  return { outboxIds, forgotten: rows.length - outboxIds.length }
}

/** Forgets the ids of rows that are gone now and were at the look before; the others are looked for again. @returns how many are forgotten */
export async function forgetGone(
  db: Database,
  outboxIds: readonly string[],
  present: ReadonlySet<string>,
): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `with look as (
       select * from unnest($1::text[], $2::boolean[]) l(outbox_id, is_there)
     ), gone as (
       delete from outboxd.pruned_submission p using look
       where p.outbox_id = look.outbox_id and p.outbox = outboxd.current_outbox() and not look.is_there and p.was_gone and p.look_at <= now()
       returning 1
     ), again as (
       update outboxd.pruned_submission p set look_at = now() + $3 * interval '1 day', was_gone = not look.is_there from look
       where p.outbox_id = look.outbox_id and p.outbox = outboxd.current_outbox() and (look.is_there or not p.was_gone)
     )
     select count(*)::int as n from gone`,
    [outboxIds, outboxIds.map((id) => present.has(id)), lookAgainDays],
  )
  return rows[0]?.n ?? 0
}
