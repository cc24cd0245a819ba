import type { Database } from '../../postgres/database.ts'

/** A slot that is not free. Times in epoch milliseconds. */
export interface BusySlot {
  permits: number
  /** When it was taken, given back or held back. */
  setMs: number
  /** When it is free again. */
  freeMs: number
  /** It is in an instance's hand: its requests are under way, or that instance has died. */
  isTaken: boolean
  /** What its requests were made for, once it was given back. */
  submissions: number
  polls: number
  /** For tokens, trials without a transaction, and `outboxd check`. */
  others: number
}

/** What the budget was spent on within the window that ends now. */
export interface BudgetSlots {
  nowMs: number
  windowMs: number
  /** Requests that the limit allows in a window. */
  capacity: number
  /** Those that are not free, the longest unchanged first. */
  busy: BusySlot[]
}

export async function readBudgetSlots(db: Database): Promise<BudgetSlots> {
  const { rows } = await db.query<BudgetSlots>(
    `select extract(epoch from now())::float8 * 1000 as "nowMs",
       coalesce((select window_ms from outboxd.budget), 0)::float8 as "windowMs",
       coalesce(sum(permits), 0)::int as capacity,
       coalesce(json_agg(json_build_object('permits', permits, 'setMs', extract(epoch from set_at) * 1000,
         'freeMs', extract(epoch from free_at) * 1000, 'isTaken', taken_by is not null, 'submissions', spent_on_submissions,
         'polls', spent_on_polls, 'others', spent_on_others) order by set_at, id)
         filter (where free_at > now() and permits > 0), '[]') as busy
     from outboxd.slot`,
  )
  return rows[0] as BudgetSlots
}
