/**
 * How far a slot reaches in time, from the moment that it is taken (docs/budget.md): the daemon's pool and a command that
 * borrows one go by the same. Imports nothing.
 */

/**
 * For how long a slot is kept to be used up. A part of the window, but no less than a claim may take that has ten round
 * trips to a database 200 ms away.
 */
export const slotHoldMs = (windowMs: number): number => Math.max(windowMs / 60, 500)

/** For how long a request may begin to leave with it. */
export const permitValidMs = (windowMs: number): number => slotHoldMs(windowMs) + Math.max(windowMs / 12, 2_000)

/** How long after a slot was taken the last answer to a request made with it comes, at most. */
export const slotReachMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(permitValidMs(windowMs)) + requestTimeoutMs

/** For how long slots stay taken: until everything made with them has arrived, and then one window. */
export const slotLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  slotReachMs(windowMs, requestTimeoutMs) + windowMs
