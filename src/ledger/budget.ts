import type { ReturnableSlot, Slot, WantedRequests } from '../model.ts'
import type { Database } from '../postgres/database.ts'

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

/** At most this many rows stand for the limit; above it a row is worth several requests. */
export const slotsMax = 500

/** A row of the table of slots. */
export interface SlotRow {
  id: number
  /** Requests that it stands for; 0 where the limit was lowered and it is retired. */
  permits: number
  /** Requests that a retired one stood for: until it is free they count. */
  retiredPermits: number
  /** Milliseconds until it is free, 0 where it is. */
  freeInMs: number
}

/** How a limit is cut into slots, which sum exactly to it. */
export function cutIntoSlots(requests: number): number[] {
  const each = Math.ceil(requests / slotsMax)
  const count = Math.ceil(requests / each)
  return Array.from({ length: count }, (_, n) => Math.min(each, requests - n * each))
}

/**
 * The rows of the table for another limit, or a longer window. What may have been sent, or may yet be, stays spent: at
 * every moment to come as many requests are owed as before, as far as the new limit has room for them, and what it has
 * no room for is kept by retired rows.
 *
 * With a longer window everything waits for as much longer, free slots too: in the time before, each slot may have been
 * used more often than the longer window allows.
 *
 * @see docs/budget.md, "Changing the limit or the window"
 */
export function refitSlots(rows: readonly SlotRow[], to: { requests: number; lengthenedByMs: number }): SlotRow[] {
  const debts = debtsOf(rows, to.lengthenedByMs)
  const fitted: Omit<SlotRow, 'id'>[] = cutIntoSlots(to.requests).map((permits) => ({
    permits,
    retiredPermits: 0,
    freeInMs: payBack(debts, permits) ?? to.lengthenedByMs,
  }))
  for (const { permits, freeInMs } of debts) fitted.push({ permits: 0, retiredPermits: permits, freeInMs })
  while (fitted.length < rows.length) fitted.push({ permits: 0, retiredPermits: 0, freeInMs: 0 })
  return fitted.map((row, n) => ({ id: n + 1, ...row }))
}

interface Debt {
  permits: number
  freeInMs: number
}

/** What is owed, the longest first. */
function debtsOf(rows: readonly SlotRow[], lengthenedByMs: number): Debt[] {
  return rows
    .filter(({ permits, freeInMs }) => freeInMs > 0 || permits > 0)
    .map(({ permits, retiredPermits, freeInMs }) => ({
      permits: permits + retiredPermits,
      freeInMs: Math.max(0, freeInMs) + lengthenedByMs,
    }))
    .filter(({ freeInMs }) => freeInMs > 0)
    .sort((a, b) => b.freeInMs - a.freeInMs)
}

/** Takes debts for so many requests off the list. @returns when the slot that stands for them is free, if there are any */
function payBack(debts: Debt[], permits: number): number | undefined {
  const freeInMs = debts[0]?.freeInMs
  for (let left = permits; left > 0 && debts[0] !== undefined; ) {
    const paid = Math.min(left, debts[0].permits)
    left -= paid
    debts[0].permits -= paid
    if (debts[0].permits === 0) debts.shift()
  }
  return freeInMs
}

/** For how many requests there are permits: those in hand, and those of the slots that were taken. */
export function permitsInHand(wanted: WantedRequests, slots: readonly { permits: number }[]): number {
  const inHand = wanted.submissions + wanted.polls + wanted.rarePolls - wanted.permits
  return inHand + slots.reduce((sum, slot) => sum + slot.permits, 0)
}

/**
 * How many of the permits go to submissions. Where there are fewer than were asked for, submissions come first, as the
 * dispatcher has already weighed them against the polls; polls keep what they want, up to half.
 *
 *     permits   wanted: submissions, polls   to submissions
 *        10                10,    0               10
 *        10                 4,    6                4
 *         6                 8,    2                4
 *         6                 8,    8                3
 *         1                 8,    8                0
 */
export function permitsForSubmissions({ submissions, polls }: WantedRequests, permits: number): number {
  return Math.min(submissions, Math.max(0, permits - Math.min(polls, Math.ceil(permits / 2))))
}

/** While nothing has proven that the last pauses are over: one record where it is ours to prove it, and none otherwise. */
export function wantedUntilProven<W extends WantedRequests>(wanted: W, isOursToProve: boolean): W {
  const submissions = isOursToProve ? 1 : 0
  return { ...wanted, submissions, permits: Math.min(wanted.permits, submissions + wanted.polls) }
}

/**
 * Slots that were set later than now, by a clock that was ahead, last from now for as long as they were set for, which is no less than they
 * had left. In a transaction.
 */
export async function holdSlotsFromNow(db: Database): Promise<void> {
  await db.query(
    // Not free_at - set_at: before PostgreSQL 17 a slot that is free since ever has no such difference.
    `update outboxd.slot set free_at = free_at + (clock_timestamp() - set_at), set_at = clock_timestamp()
     where set_at > clock_timestamp()`,
  )
}
