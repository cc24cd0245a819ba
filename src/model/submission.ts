import type { PauseReason, State } from '../model.ts'
import type { Resource } from '../resources.ts'
import type { OfStep, Remembered } from './columns.ts'

/** A submission as it was read from the ledger, for the stage that works on it. */
export interface Submission extends Remembered, Pick<OfStep, 'polledRarely'> {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource
  /** The frozen request, JSON text. */
  body: string
  /** False where acceptance is the end: its mapping says `track: false`. */
  tracked: boolean
  /** The body carries this submission's id as the transaction's, so that policy `probe` can ask for it. */
  sendsOwnId: boolean
  /** Epoch milliseconds of the outbox row's created_at. */
  recordedMs: number
  state: State
  attempt: number
  claimId: string | null
  met: MetPause | null
  /** The transaction id is an operator's word, not the service's. */
  idByPerson: boolean
  probing: boolean
  jobId: string | null
  /** How long ago it was accepted (or its probing began), on the database's clock. */
  ageMs: number
  refusedPolls: RefusedPolls
  /** How long the service has answered that it does not know the transaction; null where it has not. */
  unknownForMs: number | null
}

/** The pause that a record's own answers called for. */
export interface MetPause {
  reason: PauseReason
  /** How often in a row, others having got through in between. */
  times: number
  /** Whether another record of its kind has got through since it last met the pause. */
  othersThrough: boolean
  /** Whether one has that had met the same pause: then it passes, and is not a record's doing. */
  othersRecovered: boolean
}

/** What the polls of one transaction have met. */
export interface RefusedPolls {
  /** How often in a row they called for a pause, others having got through in between. */
  times: number
  /** Whether another record has got through since the last. */
  othersThrough: boolean
}

/** A poll in hand: fenced by its pg-boss job. */
export interface PollJob {
  id: string
  /** pg-boss's count of how often the job was taken; together with the id it fences a late holder out. */
  retryCount: number
}

/** A poll to come, as it was planned. */
export interface PlannedPoll {
  submissionId: string
  jobId: string
  resource: Resource
  /** Milliseconds since acceptance. */
  ageMs: number
  /** The age at which it was last seen pending; null if it has not been asked for yet. */
  notDoneMs: number | null
  /** Milliseconds until it is due. */
  inMs: number
}

/** A poll that is to be due at another time, in milliseconds from now. */
export type MovedPoll = Pick<PlannedPoll, 'submissionId' | 'jobId' | 'inMs'>
