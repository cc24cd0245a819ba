import type { PauseCall, Slot, SpentSlot } from '../record.ts'
import type { Database } from './database.ts'
import { standingPause } from './standingPause.ts'

/** At most this many rows stand for the limit; above it a row is worth several requests. */
const rowsMost = 500

/**
 * Makes the table of slots fit the limit. Rows are never deleted and keep what was spent: lowering the limit and raising
 * it again does not buy requests.
 *
 * @see docs/budget.md for the proof that no window ever holds more than the limit
 */
export async function fitSlots(db: Database, limit: number): Promise<void> {
  const permits = Math.ceil(limit / rowsMost)
  await db.query(
    `with wanted as (
       select n as id, least($2::int, $1::int - (n - 1) * $2::int) as permits
       from generate_series(1, ceil($1::numeric / $2::int)::int) n
     ), retired as (
       update outboxd.slot set permits = 0 where permits > 0 and id not in (select id from wanted)
     )
     insert into outboxd.slot as s (id, permits) select id, permits from wanted order by id
     on conflict (id) do update set permits = excluded.permits where s.permits <> excluded.permits`,
    [limit, permits],
  )
}

/** Whether a budget has been set up here: there is a table of slots, with slots in it. */
export async function hasSlots(db: Database): Promise<boolean> {
  const { rows } = await db.query<{ slots: string | null }>(`select to_regclass('outboxd.slot') as slots`)
  if (rows[0]?.slots === null) return false
  const { rowCount } = await db.query('select from outboxd.slot where permits > 0 limit 1')
  return (rowCount ?? 0) > 0
}

/**
 * Takes free slots for at least `permits` requests, or as many as there are. Each is taken for `leaseMs`: longer than
 * the request can last, plus the window, for the case that nobody lives to give it back.
 */
export async function takeSlots(db: Database, permits: number, leaseMs: number, instanceId: string): Promise<Slot[]> {
  const { rows } = await db.query<Slot>(
    `with free as (
       select id from outboxd.slot where permits > 0 and free_at <= clock_timestamp()
       order by free_at, id
       limit ceil($1::numeric / (select greatest(max(permits), 1) from outboxd.slot)) for update skip locked
     )
     update outboxd.slot s set lease = lease + 1, taken_by = $3, free_at = clock_timestamp() + $2 * interval '1 ms'
     from free where s.id = free.id returning s.id, s.lease, s.permits`,
    [permits, leaseMs, instanceId],
  )
  return rows
}

/**
 * Gives slots back: used ones are free again one window from now, which is after the answer; unused ones at once.
 * A lease that ran out and was taken by another changes nothing.
 */
export async function giveBack(db: Database, slots: readonly SpentSlot[], windowMs: number): Promise<void> {
  await db.query(
    `update outboxd.slot s set taken_by = null, spent_on_submissions = r.submissions,
       free_at = clock_timestamp() + case when r.used then $2 * interval '1 ms' else interval '0' end
     from json_to_recordset($1) as r(id int, lease bigint, used boolean, submissions int)
     where s.id = r.id and s.lease = r.lease`,
    [JSON.stringify(slots), windowMs],
  )
}

/**
 * Someone else spends from the same budget: the service says that fewer requests remain than we have free slots.
 * Takes the difference out for one window. A few requests of difference mean nothing: the service counted a moment ago.
 *
 * @returns how many requests were held back
 */
export async function holdBack(db: Database, remaining: number, windowMs: number): Promise<number> {
  const { rows } = await db.query<{ permits: number }>(
    `with free as (
       select id, permits, sum(permits) over (order by free_at, id) as so_far from outboxd.slot
       where permits > 0 and free_at <= clock_timestamp()
     ), surplus as (
       select id from free where so_far > $1 and (select max(so_far) from free) - $1
         > (select greatest(2, sum(permits) * 0.05) from outboxd.slot)
     )
     update outboxd.slot s set free_at = clock_timestamp() + $2 * interval '1 ms', spent_on_submissions = 0
     from surplus where s.id = surplus.id and s.free_at <= clock_timestamp() returning s.permits`,
    [remaining, windowMs],
  )
  return rows.reduce((sum, row) => sum + row.permits, 0)
}

/** The ladders of the pauses, in milliseconds by rung; the last rung stays. */
export interface PauseLadders {
  throttled: readonly number[]
  unavailable: readonly number[]
  unauthorized: readonly number[]
  unreachable: readonly number[]
}

/**
 * Raises a pause for everyone, or prolongs it: the ladder is climbed only by an answer that came after the pause was
 * over, so that ten requests in flight at once count as one.
 */
export async function raisePause(db: Database, call: PauseCall, ladders: PauseLadders): Promise<void> {
  const ladder = ladders[call.reason]
  await db.query(
    `insert into outboxd.pause as p (reason, until, detail)
     values ($1, clock_timestamp() + greatest($2::float8, ($3::float8[])[1]) * interval '1 ms', $4)
     on conflict (reason) do update set
       level = case when p.until <= clock_timestamp() then least(p.level + 1, cardinality($3::float8[]) - 1) else p.level end,
       until = greatest(p.until, clock_timestamp() + greatest($2::float8, ($3::float8[])[
         1 + case when p.until <= clock_timestamp() then least(p.level + 1, cardinality($3::float8[]) - 1) else p.level end
       ]) * interval '1 ms'),
       probe_until = null, detail = excluded.detail`,
    [call.reason, call.askedMs ?? 0, ladder, call.detail],
  )
}

/** Whether any pause stands. */
export async function isPaused(db: Database): Promise<boolean> {
  const { rowCount } = await db.query(`select from outboxd.pause where ${standingPause} limit 1`)
  return (rowCount ?? 0) > 0
}

/** Claims the right to feel the way: every pause is over but none has been proven so. @returns whether it is ours */
export async function claimProbe(db: Database, leaseMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `update outboxd.pause set probe_until = clock_timestamp() + $1 * interval '1 ms'
     where reason <> 'operator' and until <= clock_timestamp() and (probe_until is null or probe_until <= clock_timestamp())
       and not exists (select from outboxd.pause where until is null or until > clock_timestamp())`,
    [leaseMs],
  )
  return (rowCount ?? 0) > 0
}

/** A request was answered as it should be: the pauses whose time is over end for everyone. */
export async function endPauses(db: Database): Promise<void> {
  await db.query(`delete from outboxd.pause where until <= clock_timestamp()`)
}

/** Gives back the right to feel the way, as there was nothing to send. */
export async function giveBackProbe(db: Database): Promise<void> {
  await db.query(`update outboxd.pause set probe_until = null where until <= clock_timestamp()`)
}
