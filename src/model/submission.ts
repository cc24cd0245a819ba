import type { Resource } from '../resources.ts'
import type { EventCause } from './eventCauses.ts'
import type { Answer, Breach, MadeRequest, PauseToRaise } from './service.ts'

export const states = [
  'queued',
  'sending',
  'accepted',
  'completed',
  'failed',
  'rejected',
  'uncertain',
  'discarded',
] as const
/** See docs/why/states.md, "The state machine". */
export type State = (typeof states)[number]

export const statesNeedingAttention = ['failed', 'rejected', 'uncertain'] as const satisfies readonly State[]

/** States that only an operator changes. */
export const endStates = [
  'completed',
  'failed',
  'rejected',
  'uncertain',
  'discarded',
] as const satisfies readonly State[]
export type EndState = (typeof endStates)[number]

export const isEndState = (state: State): state is EndState => endStates.some((end) => end === state)

export const isFinalState = (state: State): boolean => state === 'completed' || state === 'discarded'

interface Held {
  count: number
  flag: boolean
  uuid: string
  text: string | null
  ms: number | null
}

/**
 * The time for which a column keeps its value. `start`: until an operator has the record sent again. A step keeps
 * longer-lived values unless it sets them.
 */
export type ColumnValueLifetime = 'step' | 'transaction' | 'start' | 'submission'

interface Column {
  holds: keyof Held
  lasts: ColumnValueLifetime
}

/**
 * Columns that a step keeps for later steps. The types below and src/ledger/submissions.ts are made from this table. A
 * new column needs a migration and a row here.
 */
export const submissionColumns = {
  idempotencyKey: { holds: 'uuid', lasts: 'submission' },
  inDoubt: { holds: 'flag', lasts: 'submission' },
  /** While probing, this is the id in the record's body or in Location. */
  transactionId: { holds: 'text', lasts: 'submission' },
  serverErrors: { holds: 'count', lasts: 'start' },
  renewedKeys: { holds: 'count', lasts: 'start' },
  /** True if a POST got 503, or any request E003, because the service may have stored the record nevertheless. */
  answeredUnavailable: { holds: 'flag', lasts: 'start' },
  /** How often it was sent again because the service gave an id, and E002 or E003 with it or later. */
  resubmissions: { holds: 'count', lasts: 'start' },
  repeatedAfter401: { holds: 'flag', lasts: 'transaction' },
  polls: { holds: 'count', lasts: 'transaction' },
  /** Polls in a row without a usable answer. */
  fruitless: { holds: 'count', lasts: 'transaction' },
  /** Age of the transaction when it was last seen unfinished. */
  notDoneMs: { holds: 'ms', lasts: 'transaction' },
  /** Age of the transaction when it was first seen finished. */
  doneMs: { holds: 'ms', lasts: 'step' },
  /** The status in the last poll's answer, if the interface does not have it. */
  foreignStatus: { holds: 'text', lasts: 'step' },
  errorCode: { holds: 'text', lasts: 'step' },
  error: { holds: 'text', lasts: 'step' },
  result: { holds: 'text', lasts: 'step' },
  /** True if the record failed or was rejected, but the service may have it. */
  mayHaveArrived: { holds: 'flag', lasts: 'step' },
  /** True if the record is a change of a document that was sent before: a person decides whether it is sent, too. */
  changedAfterSent: { holds: 'flag', lasts: 'step' },
} as const satisfies Record<string, Column>

type Columns = typeof submissionColumns
export type ColumnName = keyof Columns
type NameOf<L extends ColumnValueLifetime> = {
  [N in ColumnName]: Columns[N]['lasts'] extends L ? N : never
}[ColumnName]
type Values = { -readonly [N in keyof Columns]: Held[Columns[N]['holds']] }

export type KeptColumnValues = Pick<Values, NameOf<Exclude<ColumnValueLifetime, 'step'>>>
export type StepColumnValues = Pick<Values, NameOf<'step'>>

export interface Submission extends KeptColumnValues {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource
  /** JSON text. */
  tracked: boolean
  /** True if the body has this submission's id, so that policy `probe` can ask for it. */
  sendsOwnId: boolean
  recordedMs: number
  state: State
  /** Goes up with each step. */
  revision: number
  attempt: number
  claimId: string | null
  /** True if an operator gave the transaction id. */
  idByPerson: boolean
  probing: boolean
  /** Time since acceptance, or since probing began, by the database's clock. */
  ageMs: number
  /** Time since the service first said that it does not know the transaction. */
  unknownForMs: number | null
}

/** True if the service may have the record from an earlier request, however the last one ended. */
export const mayEarlierHaveArrived = ({
  inDoubt,
  serverErrors,
  resubmissions,
}: Pick<Submission, 'inDoubt' | 'serverErrors' | 'resubmissions'>): boolean =>
  inDoubt || serverErrors > 0 || resubmissions > 0

export type UncertainPolicy = 'hold' | 'resend' | 'probe'
/** Whether a POST that got 500 is sent again, or its record becomes uncertain (SERVER_ERRORS). */
export type ServerErrorPolicy = 'retry' | 'hold'

/**
 * The columns that a step writes: one member for each state, as the ledger's CHECKs require. Besides an operator, only a
 * newer version of a document discards a record.
 */
export type Change = Queued | Resubmitted | Probing | Accepted | Completed | Failed | Rejected | Uncertain | Superseded

/** Omitted values stay. */
interface Progress extends Partial<KeptColumnValues> {
  /** How often its answers opened the breaker while submissions of others got through. */
  openedTimes?: number
}

interface Queued extends Progress {
  state: 'queued'
  dueInMs: number
}

/** Queued again because its transaction failed. The row says why until the next step. */
interface Resubmitted extends Queued, Pick<StepColumnValues, 'errorCode'> {
  error: string
}

interface Asked extends Progress, Partial<Pick<StepColumnValues, 'foreignStatus'>> {
  transactionId: string
  pollInMs: number
  /** True if polls of the transaction get only a small share of the requests. */
  polledRarely: boolean
  unknown: boolean
}

/** The service is asked for the id in the record's body or in Location. */
interface Probing extends Asked {
  state: 'sending'
}

interface Accepted extends Asked {
  state: 'accepted'
}

interface Completed extends Progress, Pick<StepColumnValues, 'doneMs' | 'result'> {
  state: 'completed'
}

interface Failed extends Progress, Pick<StepColumnValues, 'doneMs' | 'errorCode' | 'mayHaveArrived'> {
  state: 'failed'
  error: string
}

interface Rejected extends Progress, Pick<StepColumnValues, 'errorCode' | 'mayHaveArrived'> {
  state: 'rejected'
  error: string
}

interface Uncertain extends Progress, Pick<StepColumnValues, 'doneMs' | 'errorCode'> {
  state: 'uncertain'
  error: string
}

interface Superseded extends Progress, Pick<StepColumnValues, 'errorCode' | 'mayHaveArrived'> {
  state: 'discarded'
  error: string
}

export interface SubmissionStep {
  change: Change
  cause: EventCause
  /** For people, if the cause does not say all. */
  message: string | null
  pause: PauseToRaise | null
}

export const stepOf = (
  change: Change,
  cause: EventCause,
  message: string | null = null,
  pause: PauseToRaise | null = null,
): SubmissionStep => ({ change, cause, message, pause })

/** Written only if no other step was written since `submission` was read. */
export interface Transition extends Omit<SubmissionStep, 'pause'> {
  submission: Submission
  /** Null after a POST. */
  poll: PollClaim | null
  request: MadeRequest | null
}

/** A poll under way: `outboxd.request` has both ids until the outcome is written or another instance takes over. */
export interface PollClaim {
  requestId: string
  claimId: string
}

export interface AttemptResult {
  step: SubmissionStep
  answer: Answer | null
  breach: Breach | null
}

export interface PlannedPoll {
  submissionId: string
  resource: Resource
  ageMs: number
  /** Null before the first poll. */
  notDoneMs: number | null
  inMs: number
}

export type MovedPoll = Pick<PlannedPoll, 'submissionId' | 'inMs'>
