/** Durations that begin with a claim (docs/why/budget.md). This file imports nothing. */

/** A claimed request may leave for this long. */
export const sendDeadlineMs = 3_000

/** After this time, a claimed request has its answer or has timed out. */
export const requestOverAfterMs = (requestTimeoutMs: number): number => sendDeadlineMs + requestTimeoutMs
