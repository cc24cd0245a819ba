import type { Resource } from '../resources.ts'
import type { Breach, PauseReason, PauseToRaise } from './service.ts'
import type { PollClaim, State, Submission, Transition } from './submission.ts'

/** What a request is made for. A question asks for no transaction of ours: a trial, or a request of a command. */
export type RequestPurpose = 'submission' | 'poll' | 'token' | 'question'

/** A record that the service accepted, or refused in JSON. */
export interface AnsweredRecord {
  resource: Resource
  /** The pause that the record's former attempt met. */
  met: PauseReason | null
  /** False if the refusal has no error code of the service. */
  hasServiceVerdict: boolean
}

/** A rejection without the service's own error code. Other records may get the same answer. */
export interface Refusal {
  submissionId: string
  resource: Resource
  fingerprint: string
  summary: string
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
  pauses: PauseToRaise[]
  answeredRecords: AnsweredRecord[]
  refusals: Refusal[]
  trialSucceeded: boolean
  trialEnded: boolean
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
  /** After a trial, one record must get through before sending resumes. */
  proof: 'none' | 'wanted' | 'under way'
}

/** What polls are planned by. Counts stop at 10,000. */
export interface PollLoad {
  /** Transactions that are polled, but not rarely. */
  tracked: number
  /** Submissions sent in the last window. */
  submissionsSent: number
}

export interface CurrentPause {
  reason: PauseReason
  /** Negative if a trial may begin; null if only an operator ends the pause. */
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
  trial: boolean
}

/** Claimed records and polls, committed before any of them is sent. Each has the id of its request. */
export interface Claim {
  submissions: ClaimedSubmission[]
  polls: ClaimedPoll[]
  /** False when the deadline for sending has passed. */
  mayLeave(): boolean
  /** True if the claim's only record has to prove that the last pauses are over. */
  isFirstAfterTrial: boolean
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
