/** The nouns of the project (docs/architecture.md, "Words"). */
import type { Resource, ResourceEndpoint } from './resources.ts'

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

export const pauseReasons = ['throttled', 'unavailable', 'unauthorized', 'unreachable', 'operator'] as const
/** Why nobody sends for a while. */
export type PauseReason = (typeof pauseReasons)[number]

export type UncertainPolicy = 'hold' | 'resend' | 'probe'

/** A row of the client's outbox as it was read: nothing parsed, every digit as the ERP wrote it. */
export interface OutboxRecord {
  /** The row's identity as text: a bigint or a uuid, whatever the table has. */
  outboxId: string
  type: string
  /** Records of one key are submitted in order; null means no order. */
  key: string | null
  /** JSON text; null where it could not be read, and then `unreadable` says why. */
  payload: string | null
  unreadable: string | null
  /** ISO 8601 text with microseconds; null where the table does not say. */
  createdAt: string | null
  /** Tells the row from another that has, or had, the same id; null where it was not read from the table. */
  stamp: string | null
}

/** A row that is put off, since it can neither be captured nor rejected, or its table refuses our mark. */
export interface SkippedRow {
  outboxId: string
  /** Whether the ledger has it, so that nobody behind it has to wait. */
  isCaptured: boolean
}

/** What a claim takes, and what it leaves where it is. */
export interface ClaimRequest {
  /** At most so many rows. */
  limit: number
  /** At most so many of one key. */
  lineMax: number
  /** Rows of these keys stay. */
  exceptKeys: readonly string[]
  /** These rows stay; those that are not captured hold back the rows of their key behind them. */
  skipped: readonly SkippedRow[]
  /** Rows of types that we do not know stay for those who do, and hold back the rows of their key behind them. */
  types: KnownTypes
}

export interface KnownTypes {
  /** Ours. */
  known: readonly string[]
  /** Those of other live instances; null: one of them may know any. */
  elsewhere: readonly string[] | null
}

/** Rows in hand. Disposed of without being marked, or when the marking is lost, they are as new as before. */
export interface ClaimedRows extends AsyncDisposable {
  /** In their order. */
  readonly outboxIds: readonly string[]
  /** Types of rows that were left to others. */
  readonly leftTypes: readonly string[]
  /** The ledger alone says that a row is taken: one that is not marked is not claimed again. */
  readonly isRemembered: boolean
  /** The first of the rows, as many as may be held in memory at once: at least one, where there is one. */
  read(): Promise<OutboxRecord[]>
  /**
   * Says on the rows what has become of them, and lets them go.
   *
   * @returns the ids of those that do not say so, and have to be told later: the table ignored it, or they are not in hand
   */
  mark(statuses: readonly RowStatus[]): Promise<string[]>
}

/** What a record has become, for its outbox row. */
export interface RowStatus {
  outboxId: string
  /** The row that is meant: another of the same id is told nothing. Left out or null: whichever has the id. */
  stamp?: string | null
  state: State
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

/** What came of telling outbox rows their states. */
export type Telling<R extends RowStatus> =
  /** Another instance tells rows just now. */
  | { kind: 'busy' }
  | { kind: 'told'; rows: ToldRow<R>[] }
  /** Nothing was written, and at least one of these rows is why: the table refuses it, or waited for a lock (`isLock`). */
  | { kind: 'refused'; statuses: R[]; code: string; message: string; isLock: boolean }

/** What came of telling one row. */
export type ToldRow<R extends RowStatus> = { status: R } & (
  | { kind: 'written' } /** also where the row is gone, or says already that it is completed or discarded */
  /** By the process with this id, where that can be seen. */
  | { kind: 'locked'; holder: number | null }
  /** The table took the statement, and nothing changed. */
  | { kind: 'ineffective'; why: string }
  /** The id is another row's now. */
  | { kind: 'another' }
  /** It waits, and its contents are others than when it was taken: edited, or another row. */
  | { kind: 'differs' }
)

/** One request of a submission, as it goes on the wire. */
export interface ServiceRequest {
  endpoint: ResourceEndpoint
  /** JSON text for a POST; the transactionId or orderId for a GET. */
  body: string
  /** Kept over the attempts of one submission; null for a GET. */
  idempotencyKey: string | null
}

/** What came back, before anyone has judged it. */
export type Answer =
  | {
      kind: 'response'
      status: number
      /** Parsed JSON of the body, undefined where it is not JSON. */
      json: unknown
      /** The first 2 kB of the body for the operator. */
      excerpt: string
      /** The error code found anywhere in the body, such as E001; null where there is none. */
      code: string | null
      /** Retry-After in milliseconds, null where absent or unreadable. */
      retryAfterMs: number | null
      /** X-RateLimit-Remaining, null where absent or unreadable. */
      rateRemaining: number | null
      tookMs: number
    }
  | {
      kind: 'no-answer'
      /** False only where it is certain that no byte of the request left this machine. */
      sent: boolean
      cause: 'timeout' | 'network'
      /** What went wrong, in words, without addresses' credentials or tokens. */
      detail: string
      tookMs: number
    }

/** How a request ended, by the names that the metrics use. */
export const outcomes = [
  'ok',
  'rejected',
  'unauthorized',
  'throttled',
  'unavailable',
  'server_error',
  'timeout',
  'network',
] as const
export type Outcome = (typeof outcomes)[number]

/** The ways in which the service can break its contract, counted by `contract_breaches_total`. */
export const breaches = [
  'unreadable_answer',
  'missing_id',
  'unknown_status',
  'other_transaction',
  'duplicate_id',
  'unknown_code',
  'rate_limit_lower',
] as const
export type Breach = (typeof breaches)[number]

/** What can be wrong and stays so until somebody, or time, mends it. */
export const problemKinds = [
  'row_skipped',
  'row_locked',
  'unknown_type',
  'report_refused',
  'report_locked',
  'mark_ineffective',
  'row_conflict',
  'foreign_outbox',
  'ledger_behind',
  'stuck_transaction',
  'mass_refusal',
  'loop_failing',
  'claim_lost',
  'settings_differ',
  'budget_starved',
  'clock_off',
  'change_capture',
  'outbox_history',
] as const
export type ProblemKind = (typeof problemKinds)[number]

/** Something that is wrong, as it stands. Times in epoch milliseconds. */
export interface Problem {
  kind: ProblemKind
  /** What it is about: a row's id, a type, a loop; empty for the whole. */
  subject: string
  /** For the operator: what was seen. */
  detail: string
  sinceMs: number
  /** When it was last seen so. */
  seenMs: number
  times: number
  /** When it is tried again by itself; null where it is not. */
  retryMs: number | null
}

/** A pause that an answer calls for. */
export interface PauseCall {
  reason: Exclude<PauseReason, 'operator'>
  /** How long the service asked for, where it said so; otherwise the reason's own steps apply. */
  askedMs: number | null
  /** For the operator: what happened and what to look at. */
  detail: string
  /** Each further try costs a record, so the wait grows longer than the reason's steps say. */
  patient?: boolean
  /** An answer came, though none of the service's own: the first tries follow each other quickly, as it may be these records. */
  answered?: boolean
}

/** What the answer to a trial says: whether the pauses whose time is over may end. */
export type TrialVerdict =
  | { kind: 'clear' }
  | { kind: 'pause'; pause: PauseCall }
  /** With the first refusal a new token is asked for, the second is the pause. */
  | { kind: 'token-refused'; pause: PauseCall }

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

/** What a submission's history says that matters for judging its next answer. */
export interface SubmitHistory {
  /** Answers 500 so far (docs/interface.md 7.1: at most 3 retries). */
  serverErrors: number
  /** Idempotency keys renewed after E002 so far. */
  renewedKeys: number
  /** Whether an attempt before this one may have arrived without our knowing. */
  earlierInDoubt: boolean
  /** Whether the request just answered was already the repeat with a new token. */
  repeatedAfter401: boolean
  /** Null where its answers have called for no pause. */
  met: MetPause | null
}

/** What an answer to a POST means for its submission. */
export type SubmitVerdict =
  | { kind: 'accepted'; transactionId: string; breach: Breach | null }
  /** `leftTrace`: the refusal itself says that the service may have the record all the same. */
  | { kind: 'rejected'; code: string | null; reason: string; leftTrace?: boolean }
  | { kind: 'failed'; code: string | null; reason: string }
  | { kind: 'uncertain'; code: string | null; reason: string; breach: Breach | null }
  /** Send again with a new idempotency key. */
  | { kind: 'renew-key'; reason: string }
  /** Answered 500: send again after a while with the same key; uses up a retry. */
  | { kind: 'retry'; afterMs: number; reason: string }
  /** Nobody knows whether it arrived, and the policy is to send again with the same key. */
  | { kind: 'resend'; afterMs: number; reason: string }
  /** Nobody knows whether it arrived, and the policy is to ask the service for the id that the mapping sends. */
  | { kind: 'probe'; reason: string }
  /** Repeat with a new token; uses up nothing. A second refusal is none where this one came of the token's age. */
  | { kind: 'new-token'; ofAge: boolean; reason: string }
  /**
   * Nothing arrived and nobody sends for a while; the record stays queued and has used up nothing. `times`: how often
   * it has met this pause while others got through; 0 where that says nothing about it.
   */
  | { kind: 'pause'; pause: PauseCall; times: number }

export interface TrackHistory {
  /** How long the service has answered 404 for this transaction, in milliseconds; null where it has not. */
  unknownForMs: number | null
  /** How often it was submitted again after it failed with E003 or E002. */
  resubmissions: number
  /** Polls in a row that brought no usable answer. */
  fruitless: number
  repeatedAfter401: boolean
  /** Whether an attempt before the one that was accepted may have arrived as well. */
  earlierInDoubt: boolean
  /** Whether the id that is asked for is an operator's word, not the service's. */
  idByPerson: boolean
  refusedPolls: RefusedPolls
}

/** What an answer to a GET means for its transaction. */
export type TrackVerdict =
  | { kind: 'completed'; result: string | null }
  | { kind: 'failed'; code: string | null; reason: string }
  /** The service has said for too long that it does not know the transaction: it never failed it. */
  | { kind: 'lost'; idByPerson: boolean; reason: string }
  /** It failed as another's duplicate, and the other may be an earlier attempt of the same record. */
  | { kind: 'uncertain'; code: string; reason: string }
  /** Still processing: no failure, uses up nothing; the schedule says when to ask next. */
  | { kind: 'pending' }
  /** The question itself went wrong: ask again after a while. `refusedPolls`: as of now, where it is this transaction alone. */
  | {
      kind: 'ask-again'
      afterMs: number
      unknown: boolean
      reason: string
      breach: Breach | null
      refusedPolls?: number
    }
  /** The transaction failed in a way that calls for submitting the record again. */
  | { kind: 'resubmit'; afterMs: number; code: string; reason: string }
  /** As for a POST. */
  | { kind: 'new-token'; ofAge: boolean; reason: string }
  | { kind: 'pause'; pause: PauseCall; refusedPolls: number }

/** A submission as it was read from the ledger, for the stage that works on it. */
export interface Submission {
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
  idempotencyKey: string
  inDoubt: boolean
  serverErrors: number
  renewedKeys: number
  resubmissions: number
  repeatedAfter401: boolean
  met: MetPause | null
  transactionId: string | null
  /** The transaction id is an operator's word, not the service's. */
  idByPerson: boolean
  probing: boolean
  jobId: string | null
  /** How long ago it was accepted (or its probing began), on the database's clock. */
  ageMs: number
  polls: number
  fruitless: number
  refusedPolls: RefusedPolls
  /** Its poll is one of those that get a small share of the slots: it is long past its time. */
  polledRarely: boolean
  unknownForMs: number | null
  notDoneMs: number | null
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

/**
 * What a transition may change of a submission; what it leaves out stays, and `null` empties. The outcome (doneMs,
 * errorCode, error, result) is always the last step's: left out, it is emptied.
 */
export interface Change {
  state: State
  /** Queued: not before that many milliseconds from now. */
  dueInMs?: number
  /** Accepted or probing: when to ask next, in milliseconds from now. */
  pollInMs?: number
  /** The next poll is one of those that get a small share of the slots; left out, it is not. */
  pollRarely?: boolean
  idempotencyKey?: string
  inDoubt?: boolean
  serverErrors?: number
  renewedKeys?: number
  resubmissions?: number
  repeatedAfter401?: boolean
  /** The pause that it has just met. */
  met?: Pick<MetPause, 'reason' | 'times'>
  transactionId?: string | null
  probing?: boolean
  polls?: number
  fruitless?: number
  /** How often in a row its polls were refused while others got through, where the last was. */
  refusedPolls?: number
  /** The service answered 404: since when is kept until an answer says otherwise. */
  unknown?: boolean
  notDoneMs?: number | null
  doneMs?: number | null
  errorCode?: string | null
  error?: string | null
  /** Failed or rejected, and yet the service may have it; left out, it has not. */
  mayHaveArrived?: boolean
  /** JSON text. */
  result?: string | null
}

/** One step of a submission: written only if nobody else took one since `submission` was read. */
export interface Transition {
  submission: Submission
  /** The poll that led to it, null for a step after a POST. */
  job: PollJob | null
  change: Change
  /** For the event log: why, in a few words. */
  cause: string
}

/** What an answer makes of a submission: the step to write, and a pause where everyone has to wait. */
export interface Step {
  change: Change
  /** For the event log: why, in a few words. */
  cause: string
  pause: PauseCall | null
}

/** What one request came to. */
export interface AttemptResult {
  step: Step
  /** Null where the request was never made. */
  answer: Answer | null
  /** The service answered in a way that its contract does not know. */
  breach: Breach | null
}

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
