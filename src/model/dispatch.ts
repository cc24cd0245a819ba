import type { PauseReason } from '../model.ts'
import type { Resource } from '../resources.ts'
import type { Transition } from './change.ts'
import type { PauseCall } from './service.ts'

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
  /** The least X-RateLimit-Remaining among the answers, where it is less than we reckon with. */
  remaining: number | null
}
