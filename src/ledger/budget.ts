import type { ReturnableSlot, Slot, WantedRequests } from '../model.ts'
import type { Database } from '../postgres/database.ts'

export interface Budget {
  requests: number
  windowMs: number
}

/** Null if no budget was set up before. */
type FormerBudget = Budget | null

/**
 * Changes the slots to a new limit and window, in a transaction. Sent requests still count. A taken slot counts until
 * its lease ends, because its instance can no longer give it back.
 */
export async function fitSlotsToBudget(db: Database, budget: Budget): Promise<FormerBudget> {
  const seen = await readBudget(db)
  if (fits(seen, budget)) return seen.budget
  // Keeps instances from taking or returning slots during the change.
  await db.query('lock table outboxd.budget, outboxd.slot in share row exclusive mode')
  const { budget: before, permits } = await readBudget(db)
  const windowLengthenedByMs = Math.max(0, budget.windowMs - (before ?? budget).windowMs)
  if (permits !== budget.requests || windowLengthenedByMs > 0)
    await writeSlots(db, fitSlotsToNewLimit(await readSlots(db), { requests: budget.requests, windowLengthenedByMs }))
  await db.query(
    `insert into outboxd.budget (requests, window_ms) values ($1, $2)
     on conflict (id) do update set requests = excluded.requests, window_ms = excluded.window_ms`,
    [budget.requests, budget.windowMs],
  )
  return before
}

interface SeenBudget {
  budget: Budget | null
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
    `select id, permits,
       case when free_at > clock_timestamp() then extract(epoch from free_at - clock_timestamp())::float8 * 1000 else 0 end
         as "freeInMs"
     from outboxd.slot order by id`,
  )
  return rows
}

async function writeSlots(db: Database, rows: readonly SlotRow[]): Promise<void> {
  await db.query(
    `insert into outboxd.slot as s (id, permits, free_at, set_at, spent_on_others)
     select id, permits, case when "freeInMs" > 0
       then clock_timestamp() + "freeInMs" * interval '1 ms' else '-infinity' end, clock_timestamp(),
       case when "freeInMs" > 0 then permits else 0 end
     from json_to_recordset($1) as r(id int, permits int, "freeInMs" float8)
     on conflict (id) do update set permits = excluded.permits,
       free_at = excluded.free_at, set_at = excluded.set_at, lease = s.lease + 1, taken_by = null,
       spent_on_submissions = 0, spent_on_polls = 0, spent_on_others = excluded.spent_on_others`,
    [JSON.stringify(rows)],
  )
}

/** True if a daemon has set up a budget. */
export async function hasAnySlots(db: Database): Promise<boolean> {
  const { rows } = await db.query<{ slots: string | null }>(`select to_regclass('outboxd.slot') as slots`)
  if (rows[0]?.slots === null) return false
  const { rowCount } = await db.query('select from outboxd.slot where permits > 0 limit 1')
  return (rowCount ?? 0) > 0
}

/** If the instance dies, its slots are free one window after their last request can have arrived (`requestsEndAfterMs`). */
export async function takeSlots(
  db: Database,
  permitsWanted: number,
  requestsEndAfterMs: number,
  instanceId: string,
): Promise<Slot[]> {
  const { rows } = await db.query<Slot>(
    `with free as (
       select id from outboxd.slot where permits > 0 and free_at <= clock_timestamp()
       order by free_at, id
       limit ceil($1::numeric / (select greatest(max(permits), 1) from outboxd.slot)) for update skip locked
     )
     update outboxd.slot s set lease = lease + 1, taken_by = $3, set_at = clock_timestamp(),
       free_at = clock_timestamp() + ($2 + (select window_ms from outboxd.budget)) * interval '1 ms'
     from free where s.id = free.id returning s.id, s.lease, s.permits`,
    [permitsWanted, requestsEndAfterMs, instanceId],
  )
  return rows
}

/**
 * Used slots become free one window from now, unused slots at once. Leaves out slots that were taken again after their
 * lease ended.
 */
export async function returnSlots(db: Database, slots: readonly ReturnableSlot[]): Promise<void> {
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
 * If the service reports fewer remaining requests than slots are free, another program spends from the same budget.
 * Blocks the surplus slots for one window. Ignores small differences, and slots that became free after the request
 * began.
 */
export async function holdBackSurplusPermits(
  db: Database,
  remainingRequests: number,
  sinceRequestMs: number,
): Promise<number> {
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
    [remainingRequests, sinceRequestMs],
  )
  return rows.reduce((sum, row) => sum + row.permits, 0)
}

/** Above this limit, each slot stands for several requests. */
export const slotsMax = 500

export interface SlotRow {
  id: number
  /** 0 if the limit needs fewer slots. */
  permits: number
  freeInMs: number
}

export function dividePermitsIntoSlots(requests: number): number[] {
  const each = Math.ceil(requests / slotsMax)
  const count = Math.ceil(requests / each)
  return Array.from({ length: count }, (_, n) => Math.min(each, requests - n * each))
}

/**
 * See docs/why/budget.md, "Changing the limit or the window".
 *
 * A lower limit drops the permits that become free first. So no slot becomes free before all dropped permits would
 * have. A higher limit adds permits that become free with the first slot, because permits may have been dropped just
 * before. A longer window delays every slot, even a free one.
 */
export function fitSlotsToNewLimit(
  rows: readonly SlotRow[],
  target: { requests: number; windowLengthenedByMs: number },
): SlotRow[] {
  const freeInMs = rows
    .flatMap((row) => Array<number>(row.permits).fill(row.freeInMs + target.windowLengthenedByMs))
    .sort((a, b) => b - a)
  let kept = 0
  const fitted = dividePermitsIntoSlots(target.requests).map((permits) => {
    const slot = { permits, freeInMs: freeInMs[kept] ?? freeInMs.at(-1) ?? 0 }
    kept += permits
    return slot
  })
  while (fitted.length < rows.length) fitted.push({ permits: 0, freeInMs: 0 })
  return fitted.map((row, n) => ({ id: n + 1, ...row }))
}

export function sumPermitsInHandAndTaken(wanted: WantedRequests, takenSlots: readonly { permits: number }[]): number {
  const inHand = wanted.submissions + wanted.polls + wanted.rarePolls - wanted.permits
  return inHand + takenSlots.reduce((sum, slot) => sum + slot.permits, 0)
}

/**
 * Polls get up to half of the permits, rounded up, and submissions the rest.
 *
 *     permits   wanted: submissions, polls   to submissions
 *        10                10,    0               10
 *        10                 4,    6                4
 *         6                 8,    2                4
 *         6                 8,    8                3
 *         1                 8,    8                0
 */
export function countPermitsForSubmissions({ submissions, polls }: WantedRequests, permits: number): number {
  return Math.min(submissions, Math.max(0, permits - Math.min(polls, Math.ceil(permits / 2))))
}

/** All instances together send one record, until a record has proven that the last pauses are over. */
export function limitToOneSubmission<W extends WantedRequests>(wanted: W, canSendRecord: boolean): W {
  const submissions = canSendRecord ? 1 : 0
  const less = wanted.submissions - submissions
  return { ...wanted, submissions, permits: Math.max(0, wanted.permits - less) }
}

/** Restarts the time of slots whose `set_at` is in the future, because the clock was set back. */
export async function restartSlotsAfterClockSetBack(db: Database): Promise<void> {
  await db.query(
    // The expression free_at - set_at fails for -infinity before PostgreSQL 17.
    `update outboxd.slot set free_at = free_at + (clock_timestamp() - set_at), set_at = clock_timestamp()
     where set_at > clock_timestamp()`,
  )
}
