import type { Resource } from '../resources.ts'
import type { Answer, Breach, MadeRequest, PauseCall, PauseReason } from './service.ts'

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
/** Where a submission is on its way (docs/why/guarantee.md, "The state machine"). */
export type State = (typeof states)[number]

export const statesNeedingAttention = ['failed', 'rejected', 'uncertain'] as const satisfies readonly State[]

/** The states in which a submission stays until an operator says otherwise. */
export const endStates = [
  'completed',
  'failed',
  'rejected',
  'uncertain',
  'discarded',
] as const satisfies readonly State[]
export type EndState = (typeof endStates)[number]

interface Held {
  count: number
  flag: boolean
  uuid: string
  text: string | null
  ms: number | null
}

/**
 * How long a column's value lasts. `step`: empty unless the step sets it. `transaction`: until another transaction
 * begins. `start`: until an operator has the record sent anew. `submission`: for good. A step leaves what lasts
 * longer than itself, unless it sets it.
 */
export type ColumnLifetime = 'step' | 'transaction' | 'start' | 'submission'

interface Column {
  holds: keyof Held
  lasts: ColumnLifetime
}

/**
 * What a submission's steps keep for later steps, by column in camel case. The types below, and the ledger's reading,
 * writing and resetting (src/ledger/submissions.ts), follow from this table: a new column is named in its migration,
 * here, and where it is used.
 */
export const columns = {
  idempotencyKey: { holds: 'uuid', lasts: 'submission' },
  /** An attempt before the next one may have arrived. */
  inDoubt: { holds: 'flag', lasts: 'submission' },
  /** The transactionId or orderId; while probing, the id that the body carries. */
  transactionId: { holds: 'text', lasts: 'submission' },
  serverErrors: { holds: 'count', lasts: 'start' },
  renewedKeys: { holds: 'count', lasts: 'start' },
  resubmissions: { holds: 'count', lasts: 'start' },
  /** The last request was refused with a 401, and is repeated with a new token. */
  repeatedAfter401: { holds: 'flag', lasts: 'transaction' },
  polls: { holds: 'count', lasts: 'transaction' },
  /** Polls in a row without a usable answer. */
  fruitless: { holds: 'count', lasts: 'transaction' },
  /** Age at which it was last seen unfinished. */
  notDoneMs: { holds: 'ms', lasts: 'transaction' },
  /** Age at which it was first seen finished. */
  doneMs: { holds: 'ms', lasts: 'step' },
  errorCode: { holds: 'text', lasts: 'step' },
  error: { holds: 'text', lasts: 'step' },
  /** JSON text, the service's digits. */
  result: { holds: 'text', lasts: 'step' },
  /** It ended failed or rejected, and yet the service may have it. */
  mayHaveArrived: { holds: 'flag', lasts: 'step' },
  /** Long past its time: its next poll gets one of a small share of the slots. */
  polledRarely: { holds: 'flag', lasts: 'step' },
} as const satisfies Record<string, Column>

type Columns = typeof columns
export type ColumnName = keyof Columns
type NameOf<L extends ColumnLifetime> = { [N in ColumnName]: Columns[N]['lasts'] extends L ? N : never }[ColumnName]
type Values = { -readonly [N in keyof Columns]: Held[Columns[N]['holds']] }

export type LastingValues = Pick<Values, NameOf<Exclude<ColumnLifetime, 'step'>>>
export type StepValues = Pick<Values, NameOf<'step'>>

export interface Submission extends LastingValues, Pick<StepValues, 'polledRarely'> {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource
  /** The frozen request, JSON text. */
  body: string
  /** False if acceptance is the end: its mapping says `track: false`. */
  tracked: boolean
  /** The body carries this submission's id, so that policy `probe` can ask for it. */
  sendsOwnId: boolean
  recordedMs: number
  state: State
  attempt: number
  claimId: string | null
  met: MetPause | null
  /** The transaction id came from an operator. */
  idByPerson: boolean
  probing: boolean
  jobId: string | null
  /** Since acceptance, or since its probing began, on the database's clock. */
  ageMs: number
  refusedPolls: RefusedPolls
  /** How long the service has said that it does not know the transaction; null if it has not. */
  unknownForMs: number | null
}

export interface MetPause {
  reason: PauseReason
  /** In a row, with others getting through in between. */
  times: number
  /** Another record of its kind has got through since. */
  othersThrough: boolean
  /** Another record met the same pause and got through: the pause passes, and this record is not its cause. */
  othersRecovered: boolean
}

export interface RefusedPolls {
  /** In a row, with others getting through in between. */
  times: number
  othersThrough: boolean
}

/** The variable UNCERTAIN_POLICY: what to do when nobody can know whether a request arrived. */
export type UncertainPolicy = 'hold' | 'resend' | 'probe'

/**
 * Where a step leads and what the row then says: one member for each state, as the ledger's CHECKs demand. Ends that
 * only an operator gives are not among them.
 */
export type Change = Queued | Resubmitted | Probing | Accepted | Completed | Failed | Rejected | Uncertain

/** What may change on the way to any state. What is left out stays as it was read. */
interface Progress extends Partial<LastingValues> {
  met?: Pick<MetPause, 'reason' | 'times'>
  /** In a row, while others got through, if the last one was refused. */
  refusedPolls?: number
}

interface Queued extends Progress {
  state: 'queued'
  dueInMs: number
}

/** Queued again because its transaction failed; the row says why until the next step. */
interface Resubmitted extends Queued, Pick<StepValues, 'errorCode'> {
  error: string
}

/** There is a transaction to ask for, and a poll that will ask. */
interface Asked extends Progress, Pick<StepValues, 'polledRarely'> {
  transactionId: string
  pollInMs: number
  unknown: boolean
}

/** It may have arrived: the service is asked for the id that its body carries. */
interface Probing extends Asked {
  state: 'sending'
}

interface Accepted extends Asked {
  state: 'accepted'
}

interface Completed extends Progress, Pick<StepValues, 'doneMs' | 'result'> {
  state: 'completed'
}

interface Failed extends Progress, Pick<StepValues, 'doneMs' | 'errorCode' | 'mayHaveArrived'> {
  state: 'failed'
  error: string
}

interface Rejected extends Progress, Pick<StepValues, 'errorCode' | 'mayHaveArrived'> {
  state: 'rejected'
  error: string
}

interface Uncertain extends Progress, Pick<StepValues, 'doneMs' | 'errorCode'> {
  state: 'uncertain'
  error: string
}

export interface Step {
  change: Change
  cause: string
  pause: PauseCall | null
}

/** One step of a submission: written only if no other was written since `submission` was read. */
export interface Transition extends Omit<Step, 'pause'> {
  submission: Submission
  /** Null after a POST. */
  job: PollJob | null
  /** Null if none was made, or its end was not seen. */
  request: MadeRequest | null
}

export interface AttemptResult {
  step: Step
  answer: Answer | null
  /** The service answered in a way that its contract does not know. */
  breach: Breach | null
}

/** A poll in hand: fenced by its pg-boss job. */
export interface PollJob {
  id: string
  /** How often pg-boss gave the job out; with the id it fences a late holder out. */
  retryCount: number
}

export interface PlannedPoll {
  submissionId: string
  jobId: string
  resource: Resource
  ageMs: number
  /** Age at which it was last seen pending; null if it was not asked for yet. */
  notDoneMs: number | null
  inMs: number
}

export type MovedPoll = Pick<PlannedPoll, 'submissionId' | 'jobId' | 'inMs'>
