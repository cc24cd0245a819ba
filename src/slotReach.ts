/** How far a slot reaches in time from the moment it is taken (docs/why/budget.md). Imports nothing. */

/**
 * How long a slot is kept to be used up: at least as long as a claim with ten round trips to a database 200 ms away.
 */
export const slotHoldMs = (windowMs: number): number => Math.max(windowMs / 60, 500)

/** How long a request may begin to leave with it. */
export const permitValidMs = (windowMs: number): number => slotHoldMs(windowMs) + Math.max(windowMs / 12, 2_000)

/** When the last answer to a request made with it comes, at most. */
export const slotReachMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(permitValidMs(windowMs)) + requestTimeoutMs

/** Slots stay taken until everything made with them has arrived, and then one window. */
export const slotLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  slotReachMs(windowMs, requestTimeoutMs) + windowMs
