import type { Resource } from '../resources.ts'
import type { Breach, PauseCall, PauseReason } from './service.ts'
import type { PollJob, State, Submission, Transition } from './submission.ts'

/** The right to make `permits` requests, until it is given back or its lease runs out. */
export interface Slot {
  id: number
  lease: string
  permits: number
}

export interface ReturnableSlot extends Slot {
  used: boolean
  submissions: number
  polls: number
  /** For a token, a trial without a transaction, or `outboxd check`. */
  others: number
}

/** A record that the service itself answered, with an id or a refusal of its own. */
export interface AnsweredRecord {
  resource: Resource
  met: PauseReason | null
  /** True if it was accepted or refused under a code of the service's own, so that the data decided. */
  judged: boolean
}

/** A record that was rejected without a code of the service's own: other records may get the same words. */
export interface Refusal {
  submissionId: string
  resource: Resource
  /** The same for refusals of one status and body. */
  fingerprint: string
  summary: string
}

/** How many requests the service said remain. */
export interface RemainingRequests {
  requests: number
  /** Since the request was begun; goes on. */
  ageMs(): number
}

export interface OutcomeBatch {
  transitions: Transition[]
  slots: ReturnableSlot[]
  pauses: PauseCall[]
  /** They end the memory of pauses that a trial had ended. */
  passages: AnsweredRecord[]
  refusals: Refusal[]
  trialSucceeded: boolean
  trialEnded: boolean
  /** The least X-RateLimit-Remaining among the answers, if it is less than the daemon reckons with. */
  remaining: RemainingRequests | null
}

/** What could be sent now, and when there is more. Counts stop at the limit asked for. */
export interface Demand {
  submissionsReady: number
  pollsDue: number
  /** Not among `pollsDue`. */
  rarePollsDue: number
  /** How long the oldest of `pollsDue` is overdue, milliseconds. */
  pollOverdueMs: number
  /** Transactions being tracked by all instances, not long past their time, counted up to 10,000. */
  tracked: number
  capacity: number
  permitsFree: number
  /** By all instances within the last window. */
  spentOnSubmissions: number
  /** Milliseconds until there is more; null if nothing is in sight. */
  nextDueMs: number | null
  nextSlotMs: number | null
  pauses: PauseView[]
  /** Whether a record has yet to prove that the last pauses are over. */
  proof: 'none' | 'wanted' | 'under way'
}

export interface PauseView {
  reason: PauseReason
  /** Milliseconds; negative if a trial may begin, null if only an operator ends the pause. */
  leftMs: number | null
  forMs: number
}

export interface WantedRequests {
  submissions: number
  polls: number
  rarePolls: number
  /** Requests that slots must be taken for; the rest is in hand. */
  permits: number
}

export interface ClaimRequest extends WantedRequests {
  id: string
  /** True to take one poll, if no other instance has the trial. */
  trial: boolean
}

/** Work that is committed to the wire, and the slots to send it with. */
export interface Claim {
  submissions: ClaimedSubmission[]
  polls: { submission: Submission; job: PollJob }[]
  slots: Slot[]
  /** True if the one record taken proves whether the last pauses are over. */
  proves: boolean
}

export interface ClaimedSubmission extends Submission {
  /** How long it was ready before it got its slot. */
  waitedMs: number
}

export interface WrittenStep {
  submissionId: string
  type: string
  state: State
  /** Since the outbox row's created_at. */
  lifetimeMs: number
  polls: number
  /** What writing the step found wrong with the answer. */
  breach: Breach | null
}
