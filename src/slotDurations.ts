/** Durations that begin when a slot is taken (docs/why/budget.md). This file imports nothing. */

/** How long an instance may use the slot's permits. A claim takes some ten round trips to the database. */
export const slotUsableMs = (windowMs: number): number => Math.max(windowMs / 60, 500)

export const permitValidMs = (windowMs: number): number => slotUsableMs(windowMs) + Math.max(windowMs / 12, 2_000)

/** After this time, each request of the slot has its answer or has timed out. */
export const computeRequestsEndAfterMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(permitValidMs(windowMs)) + requestTimeoutMs

const trialValidMaxMs = 30_000
const trialWriteMs = 5_000

/** How long a trial may wait before it leaves. All sending waits for it. */
export const trialValidMs = (windowMs: number): number => Math.min(permitValidMs(windowMs), trialValidMaxMs)

/** Then a trial counts as lost: its request has ended, and its outcome should be written. */
export const trialLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(trialValidMs(windowMs)) + requestTimeoutMs + trialWriteMs
