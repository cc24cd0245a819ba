/** Durations from the moment when a slot is taken (docs/why/budget.md). Imports nothing. */

/** An instance may use the slot's permits for this time. A claim takes some ten round trips to the database. */
export const slotHoldMs = (windowMs: number): number => Math.max(windowMs / 60, 500)

/** A request may begin to leave within this time. */
export const permitValidMs = (windowMs: number): number => slotHoldMs(windowMs) + Math.max(windowMs / 12, 2_000)

/** After this time, each request of the slot has its answer or has timed out. */
export const slotReachMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(permitValidMs(windowMs)) + requestTimeoutMs

/** A slot stays taken until its last request has arrived, plus one window. */
export const slotLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  slotReachMs(windowMs, requestTimeoutMs) + windowMs
