import type { Resource } from '../resources.ts'
import type { RaisedProblem } from './problem.ts'
import type { State } from './submission.ts'

/** A row of the client's outbox as it was read: nothing parsed, every digit as the ERP wrote it. */
export interface OutboxRecord {
  /** The row's identity as text: a bigint or a uuid, whatever the table has. */
  outboxId: string
  type: string
  /** Records of one key are submitted in order; null means no order. */
  key: string | null
  /** JSON text; null if it could not be read, and then `unreadable` says why. */
  payload: string | null
  unreadable: string | null
  /** ISO 8601 text with microseconds; null if the table does not say. */
  createdAt: string | null
  /** Tells the row from another that has, or had, the same id; null if it was not read from the table. */
  stamp: string | null
}

/** A row that is put off, since it can neither be captured nor rejected, or its table refuses our mark. */
export interface SkippedRow {
  outboxId: string
  /** Whether the ledger has it, so that nobody behind it has to wait. */
  isCaptured: boolean
}

/** What a claim of rows takes, and what it leaves where it is. */
export interface RowsRequest {
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
  /** The first of the rows, as many as may be held in memory at once: at least one, if there is one. */
  read(): Promise<OutboxRecord[]>
  /**
   * Says on the rows what has become of them, and lets them go.
   *
   * @returns the ids of those that do not say so, and that we tell later: the table ignored it, or they are not in hand
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
  /** Nothing was written, and at least one of these rows is why: the table refuses it, or it waited for a lock. */
  | { kind: 'refused'; statuses: R[]; code: string; message: string; why: 'row' | 'lock' }
  /** Nothing was written, because the statement took longer than `tellMaxMs`: these rows are too many for one. */
  | { kind: 'slow'; statuses: R[] }

/** What came of telling one row. */
export type ToldRow<R extends RowStatus> = { status: R } & RowOutcome

export type RowOutcome =
  /** Also if the row says already that it is completed or discarded. */
  | { kind: 'written' }
  /** No row has this id: it was deleted, or its partition is detached. */
  | { kind: 'gone' }
  /** By the process with this id, if that can be seen. */
  | { kind: 'locked'; holder: number | null }
  /** One of our own daemons has it locked, to mark it. */
  | { kind: 'in_hand' }
  /** The table took the statement, and nothing changed. */
  | { kind: 'ineffective'; why: string }
  /** The id is another row's now. */
  | { kind: 'another' }
  /** It waits, and its contents are others than when it was taken: edited, or another row. */
  | { kind: 'differs' }

/** A field that a record was rejected for: what may be said of it where everybody reads. */
export interface FieldFault {
  /** By its name in the mapping file; `payload` where it is the payload as a whole. */
  field: string
  /** One word of ours. */
  kind: string
}

/** What a request says in money: the fields of a decimal type that it has, by name, each digit as it is sent. */
export type Amounts = Readonly<Record<string, string>>

/** A captured record, mapped or refused: what the ledger keeps of it from the start. */
export interface CapturedRecord {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource | null
  payload: string | null
  /** The frozen request; null if the record was rejected. */
  body: string | null
  tracked: boolean
  sendsOwnId: boolean
  idempotencyKey: string
  /** ISO 8601 text; null counts as now. */
  createdAt: string | null
  /** Tells the row from another of the same id; null if nothing does. */
  stamp: string | null
  /** Why it was rejected; null if it is queued. */
  error: string | null
  /** If it did not map: the fields, without their values. */
  fieldErrors?: readonly FieldFault[]
  /** Of the frozen request; null or left out: there is none. */
  amounts?: Amounts | null
  /** Why nobody knows whether it was sent before: then it is uncertain. Null or left out: it was not. */
  doubt?: string | null
}

/** How the ledger stands while nobody else captures, and the way into it. */
export interface CaptureSession {
  /** Submissions that are queued. */
  queued: number
  lines: readonly WaitingKey[]
  /** Rows that are put off, or are in conflict with others: they are not to be claimed. */
  skipped: readonly SkippedRow[]
  /** The types that live instances know; null: one of them does not say. */
  typesKnown: KnownTypes['elsewhere']
  /** The ledger has all that was committed; otherwise nothing is to be captured until a person has recovered it. */
  hasHistory: boolean
  /** Says that rows of exactly these types wait and are left to other instances. */
  leave(types: readonly string[]): Promise<void>
  /**
   * Writes records into the ledger; committed when `work` resolves.
   *
   * @returns the ids of rows that are others than those that the ledger knows by their ids: nothing became of them; null: none were written, as
   * the ledger turned out to lack what the outbox's rows tell of
   */
  insert(records: readonly CapturedRecord[]): Promise<ReadonlySet<string> | null>
}

/** Records of one key that wait in the ledger for their turn. */
export interface WaitingKey {
  key: string
  length: number
  /** Its head is held for a person, and with it the whole line. */
  waitsForPerson: boolean
}

/** A row that fails alone, as the one who tried it tells it. */
export interface FailedRow extends SkippedRow {
  /** For the operator: what was refused and what to do, without the client's data. */
  detail: string
}

/** What change capture (deploy/change-capture) could not do, a line for each table and reason. Without the ERP's data. */
export interface CaptureTrouble {
  /** The ERP's table. */
  table: string
  /** Changed rows that were noted instead; 0 if something is not covered. */
  notes: number
  /** Whether rows were changed that could not be noted one by one. */
  hasUnknown: boolean
  since: string | null
  reason: string
  /** True if a trigger function lends its owner's rights to other roles. */
  insecure: boolean
}

/** What a round of capture begins with. */
export interface CaptureAgenda {
  /** The row that was put off and is due first; null if none is. */
  dueId: string | null
  /** Whether rows were left to other instances, and a problem says so. */
  leavesTypes: boolean
  /** Whether any row waits, or may, in the outbox that is served. */
  hasNew(): Promise<boolean>
}

/** A report that is due. What it says is read when the row is told, since it may have become something else by then. */
export interface DueReport {
  submissionId: string
  /** How often in a row the row could not be told. */
  failures: number
}

/** What an outbox row has yet to be told. */
export interface Report extends DueReport, RowStatus {
  /** Fences the acknowledgement: a state that came later has its own report. */
  revision: number
}

/** What came of telling a row: it knows, or it is told again later. */
export interface ToldReport {
  report: Report
  /** Null if the row knows; otherwise when to tell it again, in milliseconds. */
  againInMs: number | null
  /** The SQLSTATE with which its table refuses it; null if it does not. */
  code: string | null
  /** What to say of it to an operator, null if there is nothing yet. */
  problem: RaisedProblem | null
}
