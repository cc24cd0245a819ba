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
