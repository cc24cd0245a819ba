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
/** Where a submission is on its way (docs/guarantee.md, "The state machine"). */
export type State = (typeof states)[number]

/** The states that wait for a person. */
export const waitingForPerson = ['failed', 'rejected', 'uncertain'] as const satisfies readonly State[]

/** The states in which a submission has come to its end, until an operator says otherwise. */
export const ended = ['completed', 'failed', 'rejected', 'uncertain', 'discarded'] as const satisfies readonly State[]
export type EndState = (typeof ended)[number]

/** What a column may hold. */
interface Held {
  count: number
  flag: boolean
  uuid: string
  text: string | null
  /** Milliseconds. */
  ms: number | null
}

/**
 * How long a column's value lasts. `step`: it is the last step's own, and empty unless that step sets it. `transaction`:
 * until another transaction begins. `start`: until an operator has the record sent anew. `submission`: for good. A step
 * leaves what lasts longer than itself as it is, unless it sets it.
 */
export type Lasting = 'step' | 'transaction' | 'start' | 'submission'

interface Column {
  holds: keyof Held
  lasts: Lasting
}

/**
 * The columns in which a submission's steps keep what later steps need, by their names in camel case.
 *
 * The types below follow from this table, and so do the ledger's reading, writing and resetting
 * (src/ledger/submissions.ts): a new column is named in its migration, here, and where it is used.
 */
export const columns = {
  /** Sent with every attempt; the service may know the record by it. */
  idempotencyKey: { holds: 'uuid', lasts: 'submission' },
  /** An attempt before the next one may have arrived. */
  inDoubt: { holds: 'flag', lasts: 'submission' },
  /** The transactionId or orderId; while probing, the one that the body carries. */
  transactionId: { holds: 'text', lasts: 'submission' },
  /** Answers 500. */
  serverErrors: { holds: 'count', lasts: 'start' },
  /** Idempotency keys renewed after E002. */
  renewedKeys: { holds: 'count', lasts: 'start' },
  /** How often it was submitted again after its transaction had failed. */
  resubmissions: { holds: 'count', lasts: 'start' },
  /** The last request was refused with a 401, and is repeated with a new token. */
  repeatedAfter401: { holds: 'flag', lasts: 'transaction' },
  polls: { holds: 'count', lasts: 'transaction' },
  /** Polls in a row that brought no usable answer. */
  fruitless: { holds: 'count', lasts: 'transaction' },
  /** The age at which it was last seen unfinished. */
  notDoneMs: { holds: 'ms', lasts: 'transaction' },
  /** The age at which it was first seen finished. */
  doneMs: { holds: 'ms', lasts: 'step' },
  errorCode: { holds: 'text', lasts: 'step' },
  /** For the operator: why it is where it is. */
  error: { holds: 'text', lasts: 'step' },
  /** JSON text, the service's digits. */
  result: { holds: 'text', lasts: 'step' },
  /** It ended failed or rejected, and yet the service may have it. */
  mayHaveArrived: { holds: 'flag', lasts: 'step' },
  /** It is long past its time, so its next poll gets one of a small share of the slots. */
  polledRarely: { holds: 'flag', lasts: 'step' },
} as const satisfies Record<string, Column>

type Columns = typeof columns
export type ColumnName = keyof Columns
type NameOf<L extends Lasting> = { [N in ColumnName]: Columns[N]['lasts'] extends L ? N : never }[ColumnName]
type Values = { -readonly [N in keyof Columns]: Held[Columns[N]['holds']] }

/** What is handed from one step to the next. */
export type Remembered = Pick<Values, NameOf<Exclude<Lasting, 'step'>>>
/** What only the last step says. */
export type OfStep = Pick<Values, NameOf<'step'>>

/** A submission as it was read from the ledger, for the stage that works on it. */
export interface Submission extends Remembered, Pick<OfStep, 'polledRarely'> {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource
  /** The frozen request, JSON text. */
  body: string
  /** False if acceptance is the end: its mapping says `track: false`. */
  tracked: boolean
  /** The body carries this submission's id as the transaction's, so that policy `probe` can ask for it. */
  sendsOwnId: boolean
  /** Epoch milliseconds of the outbox row's created_at. */
  recordedMs: number
  state: State
  attempt: number
  claimId: string | null
  met: MetPause | null
  /** The transaction id came from an operator, not from the service. */
  idByPerson: boolean
  probing: boolean
  jobId: string | null
  /** How long ago it was accepted (or its probing began), on the database's clock. */
  ageMs: number
  refusedPolls: RefusedPolls
  /** How long the service has answered that it does not know the transaction; null if it has not. */
  unknownForMs: number | null
}

/** The pause that a record's own answers called for. */
export interface MetPause {
  reason: PauseReason
  /** How often in a row, with others getting through in between. */
  times: number
  /** Whether another record of its kind has got through since it last met the pause. */
  othersThrough: boolean
  /** Whether one has that had met the same pause: then the pause passes, and this record is not its cause. */
  othersRecovered: boolean
}

/** What the polls of one transaction have met. */
export interface RefusedPolls {
  /** How often in a row they called for a pause, with others getting through in between. */
  times: number
  /** Whether another record has got through since the last. */
  othersThrough: boolean
}

/** What to do when nobody can know whether a request arrived: the variable UNCERTAIN_POLICY. */
export type UncertainPolicy = 'hold' | 'resend' | 'probe'

/**
 * Where a step leads and what the row then says: one member for each state, as the ledger's CHECK constraints demand it.
 * The ends that only an operator gives are no steps of the daemon's.
 */
export type Change = Queued | Resubmitted | Probing | Accepted | Completed | Failed | Rejected | Uncertain

/** What may be changed on the way to any state. Left out, it stays as it was read; nothing else can be left out. */
interface Progress extends Partial<Remembered> {
  /** The pause that it has just met. */
  met?: Pick<MetPause, 'reason' | 'times'>
  /** How often in a row its polls were refused while others got through, if the last one was. */
  refusedPolls?: number
}

interface Queued extends Progress {
  state: 'queued'
  /** Not before that many milliseconds from now. */
  dueInMs: number
}

/** Queued again because its transaction failed; the row says why until the next step. */
interface Resubmitted extends Queued, Pick<OfStep, 'errorCode'> {
  error: string
}

/** There is a transaction to ask for, and a poll to come that asks for it. */
interface Asked extends Progress, Pick<OfStep, 'polledRarely'> {
  transactionId: string
  /** When to ask next, in milliseconds from now. */
  pollInMs: number
  /** The service answered 404; since when is kept until an answer says otherwise. */
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

/** What an answer makes of a submission: the step to write, and a pause if everyone has to wait. */
export interface Step {
  change: Change
  /** For the event log: why, in a few words. */
  cause: string
  pause: PauseCall | null
}

/** One step of a submission: written only if nobody else took one since `submission` was read. */
export interface Transition extends Omit<Step, 'pause'> {
  submission: Submission
  /** The poll that led to it, null for a step after a POST. */
  job: PollJob | null
  /** The request that led to it; null if none was made, or its end was not seen. */
  request: MadeRequest | null
}

/** What one request came to. */
export interface AttemptResult {
  step: Step
  /** Null if the request was never made. */
  answer: Answer | null
  /** The service answered in a way that its contract does not know. */
  breach: Breach | null
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
