import { boundText, textMax } from '../boundText.ts'
import type { PauseCall, ReturnableSlot, Slot } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { activePause, unprovenPause } from './activePause.ts'
import { backoffSteps, type PauseBackoff } from './pauseBackoff.ts'
import { refitSlots, type SlotRow } from './refitSlots.ts'

/** What holds for all instances. */
export interface Budget {
  requests: number
  windowMs: number
}

/**
 * Makes the table of slots fit the limit and the window, within the caller's transaction. What was spent stays spent;
 * whoever has a slot in hand may use it and cannot give it back any more, so that it counts until its lease runs out.
 *
 * @see docs/budget.md for the proof that no window ever holds more than the limit
 * @returns what held before; null at first
 */
export async function fitSlots(db: Database, budget: Budget): Promise<Budget | null> {
  const seen = await readBudget(db)
  if (fits(seen, budget)) return seen.budget
  // Nobody takes or gives back a slot meanwhile.
  await db.query('lock table outboxd.budget, outboxd.slot in share row exclusive mode')
  const { budget: before, permits } = await readBudget(db)
  const lengthenedByMs = Math.max(0, budget.windowMs - (before ?? budget).windowMs)
  if (permits !== budget.requests || lengthenedByMs > 0)
    await writeSlots(db, refitSlots(await readSlots(db), { requests: budget.requests, lengthenedByMs }))
  await db.query(
    `insert into outboxd.budget (requests, window_ms) values ($1, $2)
     on conflict (id) do update set requests = excluded.requests, window_ms = excluded.window_ms`,
    [budget.requests, budget.windowMs],
  )
  return before
}

/** Whether the limit, the window and the table of slots are as they should be. */
export async function isFitted(db: Database, budget: Budget): Promise<boolean> {
  return fits(await readBudget(db), budget)
}

interface SeenBudget {
  /** What holds; null at first. */
  budget: Budget | null
  /** What the slots sum to. */
  permits: number
}

const fits = ({ budget, permits }: SeenBudget, wanted: Budget) =>
  permits === wanted.requests && budget?.requests === wanted.requests && budget.windowMs === wanted.windowMs

async function readBudget(db: Database): Promise<SeenBudget> {
  const { rows } = await db.query<SeenBudget>(
    `select (select json_build_object('requests', requests, 'windowMs', window_ms) from outboxd.budget) as budget,
       (select coalesce(sum(permits), 0)::int from outboxd.slot) as permits`,
  )
  return rows[0] as SeenBudget
}

async function readSlots(db: Database): Promise<SlotRow[]> {
  const { rows } = await db.query<SlotRow>(
    `select id, permits, retired_permits as "retiredPermits",
       case when free_at > clock_timestamp() then extract(epoch from free_at - clock_timestamp())::float8 * 1000 else 0 end
         as "freeInMs"
     from outboxd.slot order by id`,
  )
  return rows
}

async function writeSlots(db: Database, rows: readonly SlotRow[]): Promise<void> {
  await db.query(
    `insert into outboxd.slot as s (id, permits, retired_permits, free_at, set_at)
     select id, permits, "retiredPermits", case when "freeInMs" > 0
       then clock_timestamp() + "freeInMs" * interval '1 ms' else '-infinity' end, clock_timestamp()
     from json_to_recordset($1) as r(id int, permits int, "retiredPermits" int, "freeInMs" float8)
     on conflict (id) do update set permits = excluded.permits, retired_permits = excluded.retired_permits,
       free_at = excluded.free_at, set_at = excluded.set_at, lease = s.lease + 1, taken_by = null,
       spent_on_submissions = 0, spent_on_polls = 0, spent_on_others = 0`,
    [JSON.stringify(rows)],
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
 * Takes free slots for at least `permits` requests, or as many as there are. Each is taken for `reachMs`, by which the
 * last of its requests has arrived, and one window, for the case that nobody lives to give it back.
 */
export async function takeSlots(db: Database, permits: number, reachMs: number, instanceId: string): Promise<Slot[]> {
  const { rows } = await db.query<Slot>(
    `with free as (
       select id from outboxd.slot where permits > 0 and free_at <= clock_timestamp()
       order by free_at, id
       limit ceil($1::numeric / (select greatest(max(permits), 1) from outboxd.slot)) for update skip locked
     )
     update outboxd.slot s set lease = lease + 1, taken_by = $3, set_at = clock_timestamp(),
       free_at = clock_timestamp() + ($2 + (select window_ms from outboxd.budget)) * interval '1 ms'
     from free where s.id = free.id returning s.id, s.lease, s.permits`,
    [permits, reachMs, instanceId],
  )
  return rows
}

/**
 * Gives slots back: used ones are free again one window from now, which is after the answer; unused ones at once.
 * A lease that ran out and was taken by another changes nothing.
 */
export async function giveBack(db: Database, slots: readonly ReturnableSlot[]): Promise<void> {
  await db.query(
    `update outboxd.slot s set taken_by = null, spent_on_submissions = r.submissions,
       spent_on_polls = r.polls, spent_on_others = r.others, set_at = clock_timestamp(),
       free_at = clock_timestamp()
         + case when r.used then (select window_ms from outboxd.budget) else 0 end * interval '1 ms'
     from json_to_recordset($1) as r(id int, lease bigint, used boolean, submissions int, polls int, others int)
     where s.id = r.id and s.lease = r.lease`,
    [JSON.stringify(slots)],
  )
}

/**
 * Someone else spends from the same budget: the service says that fewer requests remain than we have free slots.
 * Takes the difference out for one window. A few requests of difference mean nothing: the service counted a moment ago.
 *
 * Only slots that have been free since before the request was begun are compared. A slot that came free while the answer was
 * on its way, or waited to be written, was busy when the service counted.
 *
 * @param ageMs how long ago the request was begun whose answer said it
 * @returns how many requests were held back
 */
export async function holdBack(db: Database, remaining: number, ageMs: number): Promise<number> {
  const { rows } = await db.query<{ permits: number }>(
    `with free as (
       select id, permits, sum(permits) over (order by free_at, id) as so_far from outboxd.slot
       where permits > 0 and free_at <= clock_timestamp() - $2 * interval '1 ms'
     ), surplus as (
       select id from free where so_far > $1 and (select max(so_far) from free) - $1
         > (select greatest(2, sum(permits) * 0.05) from outboxd.slot)
     )
     update outboxd.slot s set taken_by = null, spent_on_submissions = 0, spent_on_polls = 0,
       spent_on_others = 0, set_at = clock_timestamp(),
       free_at = clock_timestamp() + (select window_ms from outboxd.budget) * interval '1 ms'
     from surplus where s.id = surplus.id and s.free_at <= clock_timestamp() returning s.permits`,
    [remaining, ageMs],
  )
  return rows.reduce((sum, row) => sum + row.permits, 0)
}

/**
 * The step of a pause that is raised again: the next, where it came after the pause was over, so that ten requests in
 * flight at once count as one. A trial that ended the pause does not take it back to the first step, only a record does that
 * gets through: what records alone meet would otherwise begin anew for ever.
 */
const nextLevel = `case when p.cleared_at is not null and not (p.${unprovenPause}) then 0
  when p.until <= clock_timestamp() then least(p.level + 1, cardinality($3::float8[]) - 1) else p.level end`

/** Raises a pause for everyone, or prolongs it. */
export async function raisePause(db: Database, call: PauseCall, backoff: PauseBackoff): Promise<void> {
  const steps = backoffSteps(call, backoff)
  await db.query(
    `insert into outboxd.pause as p (reason, until, detail)
     values ($1, clock_timestamp() + greatest($2::float8, ($3::float8[])[1]) * interval '1 ms', $4)
     on conflict (reason) do update set
       since = case when p.cleared_at is not null and not (p.${unprovenPause}) then excluded.since else p.since end,
       level = ${nextLevel},
       until = greatest(p.until,
         clock_timestamp() + greatest($2::float8, ($3::float8[])[1 + ${nextLevel}]) * interval '1 ms'),
       probe_until = null, cleared_at = null, detail = excluded.detail`,
    [call.reason, call.askedMs ?? 0, steps, boundText(call.detail, textMax.excerpt)],
  )
}

/** Whether a pause stands, and if none does, whether a record has yet to prove that the last one is over. */
export async function readWay(db: Database): Promise<'paused' | 'unproven' | 'open'> {
  const { rows } = await db.query<{ isPaused: boolean; isUnproven: boolean }>(
    `select coalesce(bool_or(${activePause}), false) as "isPaused",
       coalesce(bool_or(${unprovenPause}), false) as "isUnproven" from outboxd.pause`,
  )
  return rows[0]?.isPaused ? 'paused' : rows[0]?.isUnproven ? 'unproven' : 'open'
}

/** Claims the right to the trial: every pause is over but none has been proven so. @returns whether it is ours */
export async function claimTrial(db: Database, leaseMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `update outboxd.pause set probe_until = clock_timestamp() + $1 * interval '1 ms'
     where reason <> 'operator' and cleared_at is null and until <= clock_timestamp()
       and (probe_until is null or probe_until <= clock_timestamp())
       and not exists (select from outboxd.pause where until is null or until > clock_timestamp())`,
    [leaseMs],
  )
  return (rowCount ?? 0) > 0
}

/** Claims the right to send the one record that proves that a pause is over. @returns whether it is ours */
export async function claimProof(db: Database, leaseMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `update outboxd.pause set probe_until = clock_timestamp() + $1 * interval '1 ms'
     where ${unprovenPause} and (probe_until is null or probe_until <= clock_timestamp())`,
    [leaseMs],
  )
  return (rowCount ?? 0) > 0
}

/** A trial was answered as it should be: the pauses whose time is over end for everyone. */
export async function endPauses(db: Database): Promise<void> {
  await db.query(
    `with operators as (delete from outboxd.pause where reason = 'operator' and until <= clock_timestamp())
     update outboxd.pause set cleared_at = clock_timestamp(), probe_until = null
     where reason <> 'operator' and cleared_at is null and until <= clock_timestamp()`,
  )
}

/** Gives back the right to the trial or to the proof, as there was nothing to send or nothing came of it. */
export async function endTrial(db: Database): Promise<void> {
  await db.query(`update outboxd.pause set probe_until = null where until <= clock_timestamp()`)
}
