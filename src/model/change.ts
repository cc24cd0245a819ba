import type { OfStep, Remembered } from './columns.ts'
import type { Answer, Breach, MadeRequest, PauseCall } from './service.ts'
import type { MetPause, PollJob, Submission } from './submission.ts'

/**
 * Where a step leads, and what the row then says: one member for a state, with what the CHECK constraints of the ledger
 * demand of that state. The ends that an operator alone gives are no steps of the daemon's.
 */
export type Change = Queued | Resubmitted | Probing | Accepted | Completed | Failed | Rejected | Uncertain

/** What may be changed on the way to any state. Left out, it stays as it was read; nothing else can be left out. */
interface Progress extends Partial<Remembered> {
  /** The pause that it has just met. */
  met?: Pick<MetPause, 'reason' | 'times'>
  /** How often in a row its polls were refused while others got through, where the last was. */
  refusedPolls?: number
}

interface Queued extends Progress {
  state: 'queued'
  /** Not before that many milliseconds from now. */
  dueInMs: number
}

/** Queued again since its transaction failed; the row says why until the next step. */
interface Resubmitted extends Queued, Pick<OfStep, 'errorCode'> {
  error: string
}

/** There is a transaction to ask for, and a poll to come that asks for it. */
interface Asked extends Progress, Pick<OfStep, 'polledRarely'> {
  transactionId: string
  /** When to ask next, in milliseconds from now. */
  pollInMs: number
  /** The service answered 404: since when is kept until an answer says otherwise. */
  unknown: boolean
}

/** It may have arrived, and the service is asked for the id that its body carries. */
interface Probing extends Asked {
  state: 'sending'
}

interface Accepted extends Asked {
  state: 'accepted'
}

interface Completed extends Progress, Pick<OfStep, 'doneMs' | 'result'> {
  state: 'completed'
}

interface Failed extends Progress, Pick<OfStep, 'doneMs' | 'errorCode' | 'mayHaveArrived'> {
  state: 'failed'
  error: string
}

interface Rejected extends Progress, Pick<OfStep, 'errorCode' | 'mayHaveArrived'> {
  state: 'rejected'
  error: string
}

interface Uncertain extends Progress, Pick<OfStep, 'doneMs' | 'errorCode'> {
  state: 'uncertain'
  error: string
}

/** One step of a submission: written only if nobody else took one since `submission` was read. */
export interface Transition {
  submission: Submission
  /** The poll that led to it, null for a step after a POST. */
  job: PollJob | null
  change: Change
  /** For the event log: why, in a few words. */
  cause: string
  /** The request that it came of; null where none was made, or nobody saw what came of it. */
  request: MadeRequest | null
}

/** What an answer makes of a submission: the step to write, and a pause where everyone has to wait. */
export interface Step {
  change: Change
  /** For the event log: why, in a few words. */
  cause: string
  pause: PauseCall | null
}

/** What one request came to. */
export interface AttemptResult {
  step: Step
  /** Null where the request was never made. */
  answer: Answer | null
  /** The service answered in a way that its contract does not know. */
  breach: Breach | null
}
