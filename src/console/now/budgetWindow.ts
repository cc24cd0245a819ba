import type { BudgetSlots, BusySlot } from '../../ledger/operator/readBudgetSlots.ts'

/** What a request was made for, or what keeps a slot from being used. */
export const markKinds = ['submissions', 'polls', 'others', 'inHand', 'heldBack'] as const
export type MarkKind = (typeof markKinds)[number]

/** A request, or several that were made with one slot. */
export interface Mark {
  kind: MarkKind
  requests: number
  /** How long ago it was answered, or taken where it is not answered yet, milliseconds. */
  ageMs: number
}

/** The budget as the window that it is. */
export interface BudgetWindow {
  windowMs: number
  capacity: number
  free: number
  counts: Record<MarkKind, number>
  marks: Mark[]
  /** Milliseconds until another slot is free; null where all are, or there is no budget yet. */
  nextFreeMs: number | null
}

/** Makes marks of slots. Pure. */
export function budgetWindow({ nowMs, windowMs, capacity, busy }: BudgetSlots): BudgetWindow {
  const marks = busy.flatMap((slot) => marksOf(slot, nowMs, windowMs))
  const count = (kind: MarkKind) => marks.reduce((sum, mark) => sum + (mark.kind === kind ? mark.requests : 0), 0)
  const counts = Object.fromEntries(markKinds.map((kind) => [kind, count(kind)])) as Record<MarkKind, number>
  const taken = marks.reduce((sum, { requests }) => sum + requests, 0)
  const nextFreeMs = busy.length === 0 ? null : Math.max(0, Math.min(...busy.map(({ freeMs }) => freeMs)) - nowMs)
  return { windowMs, capacity, free: capacity - taken, counts, marks, nextFreeMs }
}

function marksOf(slot: BusySlot, nowMs: number, windowMs: number): Mark[] {
  // The lease of who died is longer than the window.
  const ageMs = Math.min(Math.max(0, nowMs - slot.setMs), windowMs)
  if (slot.isTaken) return [{ kind: 'inHand', requests: slot.permits, ageMs }]
  let left = slot.permits
  const spent = (['submissions', 'polls', 'others'] as const).flatMap((kind): Mark[] => {
    // An instance of an older version notes its submissions alone, and leaves what another one noted before.
    const requests = Math.min(slot[kind], left)
    left -= requests
    return requests > 0 ? [{ kind, requests, ageMs }] : []
  })
  // Not free and spent on nothing: somebody else uses the same budget, or it was given back with requests unmade.
  return left > 0 ? [...spent, { kind: 'heldBack', requests: left, ageMs }] : spent
}
