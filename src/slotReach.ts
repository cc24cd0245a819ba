/** A slot's reach in time from the moment when it is taken (docs/why/budget.md). Imports nothing. */

/**
 * The time for which a slot is kept to be used up: at least as long as a claim with ten round trips to a database 200
 * ms away.
 */
export const slotHoldMs = (windowMs: number): number => Math.max(windowMs / 60, 500)

/** The time within which a request may begin to leave with the slot. */
export const permitValidMs = (windowMs: number): number => slotHoldMs(windowMs) + Math.max(windowMs / 12, 2_000)

/** The time by which the last answer to a request of the slot has come. */
export const slotReachMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(permitValidMs(windowMs)) + requestTimeoutMs

/** Slots stay taken until all their requests have arrived, and then one window. */
export const slotLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  slotReachMs(windowMs, requestTimeoutMs) + windowMs
