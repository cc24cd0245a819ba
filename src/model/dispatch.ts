import type { Resource } from '../resources.ts'
import type { Breach, PauseReason, PauseToRaise } from './service.ts'
import type { PollJob, State, Submission, Transition } from './submission.ts'

/** Permission to make `permits` requests. It ends when the slot is given back or its lease ends. */
export interface Slot {
  id: number
  lease: string
  permits: number
}

export interface ReturnableSlot extends Slot {
  used: boolean
  submissions: number
  polls: number
  /** Requests for tokens, trials that ask for no transaction, and requests of `outboxd check`. */
  others: number
}

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
  slots: ReturnableSlot[]
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
  /** Transactions that are polled, but not rarely. Counted up to 10,000. */
  tracked: number
  capacity: number
  permitsFree: number
  /** Submissions sent in the last window. */
  spentOnSubmissions: number
  /** Time until the next work is due; null if nothing is planned. */
  nextDueMs: number | null
  nextSlotMs: number | null
  pauses: CurrentPause[]
  /** After a trial, one record must get through before sending resumes. */
  proof: 'none' | 'wanted' | 'under way'
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
  permits: number
}

export interface ClaimRequest extends WantedRequests {
  id: string
  trial: boolean
}

/** Claimed records and polls, committed before any of them is sent. */
export interface Claim {
  submissions: ClaimedSubmission[]
  polls: { submission: Submission; job: PollJob }[]
  slots: Slot[]
  /** True if the claim's only record has to prove that the last pauses are over. */
  isFirstAfterTrial: boolean
}

export interface ClaimedSubmission extends Submission {
  waitedMs: number
}

export interface WrittenStep {
  submissionId: string
  type: string
  state: State
  lifetimeMs: number
  polls: number
  breach: Breach | null
}
