import type { Resource } from '../resources.ts'
import type { Breach, PauseCall, PauseReason } from './service.ts'
import type { PollJob, State, Submission, Transition } from './submission.ts'

/** A slot in hand: the right to make `permits` requests, until it is given back or its lease runs out. */
export interface Slot {
  id: number
  lease: string
  permits: number
}

/** A slot to give back, and what it was spent on. */
export interface ReturnableSlot extends Slot {
  used: boolean
  submissions: number
  polls: number
  /** For a token, as a trial without a transaction, and by `outboxd check`. */
  others: number
}

/** A record that the service itself has answered, with an id or a refusal of its own. */
export interface Passage {
  resource: Resource
  /** The pause that it had met before. */
  met: PauseReason | null
  /** It was accepted, or judged under a code of the service's own: others before it were not refused by mistake. */
  judged: boolean
}

/** A record that was rejected in words that others may be, too: without a code of the service's own. */
export interface Refusal {
  submissionId: string
  resource: Resource
  /** The same for refusals of one status and body. */
  fingerprint: string
  /** One line for the operator. */
  summary: string
}

/** How many requests the service said remain, and how long ago the request was begun whose answer said it. */
export interface Remaining {
  requests: number
  /** Goes on until it is written. */
  ageMs(): number
}

/** What came of some work, to be written together. */
export interface OutcomeBatch {
  transitions: Transition[]
  slots: ReturnableSlot[]
  pauses: PauseCall[]
  /** Records that the service itself has answered: pauses that a trial had ended are forgotten. */
  passages: Passage[]
  /** Records that were rejected, in the order of the answers. */
  refusals: Refusal[]
  /** A trial was answered as it should be: pauses whose time is over end. */
  trialSucceeded: boolean
  /** The trial is over: where its answer proved nothing, another may begin. */
  trialEnded: boolean
  /** The least X-RateLimit-Remaining among the answers, if it is less than we reckon with. */
  remaining: Remaining | null
}

/** What could be sent now and when there is more, in one look; the dispatcher decides on it. */
export interface Demand {
  /** Submissions ready to be sent, counted up to the limit asked for. */
  submissionsReady: number
  /** Polls that are due, counted up to the limit asked for. */
  pollsDue: number
  /** Due polls of transactions that are long past their time, counted up to the limit asked for; not among the others. */
  rarePollsDue: number
  /** How long the oldest due poll is overdue, milliseconds; those of transactions long past their time aside. */
  pollOverdueMs: number
  /** Transactions being tracked that are not long past their time, all instances together, counted up to 10,000. */
  tracked: number
  /** Requests that the limit in force allows in a window. */
  capacity: number
  /** Requests that free slots allow now. */
  permitsFree: number
  /** Requests that submissions have used within the last window, all instances together. */
  spentOnSubmissions: number
  /** Milliseconds until there is more to do or to do it with; null if nothing is in sight. */
  nextDueMs: number | null
  nextSlotMs: number | null
  pauses: PauseView[]
  /** Whether a record has yet to prove that the last pauses are over, and whether one is on its way to do so. */
  proof: 'none' | 'wanted' | 'under way'
}

export interface PauseView {
  reason: PauseReason
  /** Milliseconds until it may end; negative if a trial may begin, null if only an operator ends it. */
  leftMs: number | null
  /** For how long it has stood, milliseconds. */
  forMs: number
}

/** How many requests of each kind a claim is to make. */
export interface WantedRequests {
  submissions: number
  polls: number
  /** Polls of transactions that are long past their time. */
  rarePolls: number
  /** Requests that slots must be taken for; the rest is already in hand. */
  permits: number
}

/** What a claim asks for. */
export interface ClaimRequest extends WantedRequests {
  id: string
  /** A trial is due: take one poll, if nobody else does. */
  trial: boolean
}

/** Work in hand: committed to the wire, and slots to send it with. */
export interface Claim {
  submissions: ClaimedSubmission[]
  polls: { submission: Submission; job: PollJob }[]
  slots: Slot[]
  /** The one record that was taken proves whether the last pauses are over. */
  proves: boolean
}

/** A submission that is committed to the wire, under a claim. */
export interface ClaimedSubmission extends Submission {
  /** How long it was ready before it got its slot. */
  waitedMs: number
}

/** A step that is in the ledger: nobody else had taken one in between. */
export interface WrittenStep {
  submissionId: string
  type: string
  state: State
  /** From the outbox row's created_at until now, milliseconds. */
  lifetimeMs: number
  polls: number
  /** What the writing of it found wrong with the answer. */
  breach: Breach | null
}
