/** Durations that begin with a claim (docs/why/budget.md). This file imports nothing. */

/** A claimed request may leave for this long. */
export const sendDeadlineMs = 3_000

/** After this time, a claimed request has its answer or has timed out. */
export const requestOverAfterMs = (requestTimeoutMs: number): number => sendDeadlineMs + requestTimeoutMs

/** How long a trial may wait before it leaves, its claim included. All sending waits for it. */
export const trialDeadlineMs = 10_000

const trialWriteMs = 5_000

/** Then a trial counts as lost: its request has ended, and its outcome should be written. */
export const trialLostAfterMs = (requestTimeoutMs: number): number => trialDeadlineMs + requestTimeoutMs + trialWriteMs
