import type { Resource } from '../resources.ts'
import type { Breach, PauseReason, PauseToRaise } from './service.ts'
import type { PollClaim, State, Submission, Transition } from './submission.ts'

/** What a request is made for. A question is a GET that is no poll: a trial of the breaker, or a request of a command. */
export type RequestPurpose = 'submission' | 'poll' | 'token' | 'question'

/** What an answer says about the service, for the breaker (src/model/breaker.ts). */
export type BreakerSign =
  | { kind: 'works' }
  /** The request did not leave: nothing is known. */
  | { kind: 'unknown' }
  | {
      kind: 'fails'
      pause: PauseToRaise
      code: string | null
      /** False if no record can be the cause: no connection, a 429, no token. */
      isOfRecord: boolean
      /** True if submissions failed, so that a GET that works proves too little. */
      isOfSubmission: boolean
      /** True if the record is left in doubt. */
      isInDoubt: boolean
      /** True after 403 to a GET: the service works, and may refuse only what was asked for. */
      isForbiddenGet: boolean
    }

/** The answer to a request that failed, or that was a trial of the breaker. */
export interface BreakerAnswer {
  request: RequestPurpose
  /** Null for a token. */
  requestId: string | null
  submissionId: string | null
  sign: BreakerSign
}

export interface RemainingRequests {
  requests: number
  /** Time since the request began. */
  ageMs(): number
}

export interface OutcomeBatch {
  transitions: Transition[]
  /** Ids of requests that were answered. */
  answeredRequests: string[]
  /** Ids of requests that were claimed but never left. */
  unsentRequests: string[]
  answers: BreakerAnswer[]
  /** The lowest X-RateLimit-Remaining, if the daemon expected more. */
  remaining: RemainingRequests | null
}

/** Ready and due work, and the budget. Counts stop at the limit asked for. */
export interface RequestDemand {
  submissionsReady: number
  pollsDue: number
  rarePollsDue: number
  pollOverdueMs: number
  limit: number
  /** Requests that may be made now. */
  free: number
  /** Time until the next work is due; null if nothing is planned. */
  nextDueMs: number | null
  /** Time until a request may be made; null if one may be made now. */
  nextFreeMs: number | null
  pauses: CurrentPause[]
  /** Null if the breaker is closed. */
  breaker: BreakerDemand | null
}

/** What polls are planned by. Counts stop at 10,000. */
export interface PollLoad {
  /** Transactions that are polled, but not rarely. */
  tracked: number
  /** Submissions sent in the last window. */
  submissionsSent: number
}

export interface BreakerDemand {
  /** Time until a trial may begin; null if only a person ends the pause. */
  leftMs: number | null
  /** True if polls go on, and the next trial has to be a submission. */
  hasGetWorked: boolean
}

export interface CurrentPause {
  reason: PauseReason
  /** Negative if a trial may begin; null if only a person ends the pause. */
  leftMs: number | null
  forMs: number
}

export interface WantedRequests {
  submissions: number
  polls: number
  rarePolls: number
}

export interface ClaimRequest extends WantedRequests {
  id: string
}

/** Claimed records and polls, committed before any of them is sent. Each has the id of its request. */
export interface Claim {
  submissions: ClaimedSubmission[]
  polls: ClaimedPoll[]
  /** Set if a trial of the breaker asks for a transaction that the service knows. */
  question: ClaimedQuestion | null
  /** False when the deadline for sending has passed. */
  mayLeave(): boolean
}

export interface ClaimedQuestion {
  requestId: string
  resource: Resource
  transactionId: string
}

export interface ClaimedSubmission extends Submission {
  body: string
  requestId: string
  waitedMs: number
}

export interface ClaimedPoll {
  submission: Submission
  poll: PollClaim
}

export interface ClaimedRequest {
  requestId: string
  /** False when the deadline for sending has passed. */
  mayLeave(): boolean
}

export interface WrittenStep {
  submissionId: string
  type: string
  state: State
  lifetimeMs: number
  polls: number
  breach: Breach | null
}
