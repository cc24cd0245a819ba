import type { Resource } from '../resources.ts'
import type { RaisedProblem } from './problem.ts'
import type { State } from './submission.ts'

/** A row of the client's outbox as it was read: nothing parsed, every digit as the ERP wrote it. */
export interface OutboxRecord {
  /** A bigint or a uuid, as text. */
  outboxId: string
  type: string
  /** Records of one key are submitted in order. */
  key: string | null
  /** JSON text; null if `unreadable` says why. */
  payload: string | null
  unreadable: string | null
  /** ISO 8601 with microseconds; null if the table does not say. */
  createdAt: string | null
  /** Tells the row from another with the same id; null if it was not read from the table. */
  stamp: string | null
  /** The document of the ERP that the row stands for, such as `public.sale_sale 5`; null or left out: its payload is the record. */
  document?: string | null
  /** Why there is no record: the document was deleted, or does not meet the condition. Null or left out: there is one. */
  noRecord?: string | null
}

/** A row that is put off: it can be neither captured nor rejected, or its table refuses the mark. */
export interface SkippedRow {
  outboxId: string
  /** True if the ledger has it: then rows of its key behind it need not wait. */
  isCaptured: boolean
}

export interface RowsRequest {
  limit: number
  /** The most rows of one key. */
  keyRowsMax: number
  exceptKeys: readonly string[]
  /** Left where they are. One that is not captured holds back the rows of its key behind it. */
  skipped: readonly SkippedRow[]
  /** Rows of other types are left to the instances that know them, and hold back the rows of their key behind them. */
  types: KnownTypes
}

export interface KnownTypes {
  /** This instance's. */
  known: readonly string[]
  /** Those of other live instances; null if one of them may know any. */
  elsewhere: readonly string[] | null
}

/** Rows in hand. Unless `mark` succeeds before disposal, they are as new as before. */
export interface ClaimedRows extends AsyncDisposable {
  readonly outboxIds: readonly string[]
  readonly leftTypes: readonly string[]
  /** True if only the ledger remembers that a row was taken; an unmarked row is not claimed again. */
  readonly isRemembered: boolean
  /** Reads the first rows, as many as memory allows, at least one if there is one. */
  read(): Promise<OutboxRecord[]>
  /**
   * Writes on the rows what became of them, and lets them go.
   *
   * @returns the ids of rows that the table did not change or that are not in hand: they are told later
   */
  mark(statuses: readonly RowStatus[]): Promise<string[]>
}

export interface RowStatus {
  outboxId: string
  /** The row that is meant; any row with the id if null or left out. */
  stamp?: string | null
  state: State
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

export type WriteBackResult<R extends RowStatus> =
  | { kind: 'busy' }
  | { kind: 'done'; rows: WrittenBackRow<R>[] }
  /** Nothing was written: the table refuses one of these rows, or one is locked. */
  | { kind: 'refused'; statuses: R[]; code: string; message: string; why: 'row' | 'lock' }
  /** Nothing was written: the statement took longer than `writeBackMaxMs`. */
  | { kind: 'slow'; statuses: R[] }

export type WrittenBackRow<R extends RowStatus> = { status: R } & RowOutcome

export type RowOutcome =
  /** Also if the row says already that it is completed or discarded. */
  | { kind: 'written' }
  /** No row has this id: it was deleted, or its partition is detached. */
  | { kind: 'gone' }
  | { kind: 'locked'; holder: number | null }
  | { kind: 'in_hand' }
  | { kind: 'ineffective'; why: string }
  | { kind: 'another' }
  /** It waits, and its contents changed since it was taken. */
  | { kind: 'differs' }

/** A field that a record was rejected for, without its value. */
export interface FieldFault {
  /** By its name in the mapping file; `payload` for the payload as a whole. */
  field: string
  kind: string
}

/** The decimal fields of a request by name, each digit as it is sent. */
export type Amounts = Readonly<Record<string, string>>

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
  createdAt: string | null
  /** Tells the row from another of the same id; null if nothing does. */
  stamp: string | null
  error: string | null
  fieldErrors?: readonly FieldFault[]
  amounts?: Amounts | null
  /** The document of the ERP that it is of; null or left out: none. */
  document?: string | null
  /** Why nothing is sent for it: then it ends as discarded. Null or left out: it is sent, or rejected. */
  discarded?: string | null
  /** Why nobody can know whether it was sent before, so that it is uncertain. */
  doubt?: string | null
}

export interface CaptureSession {
  queued: number
  waitingKeys: readonly WaitingKey[]
  /** Rows that are put off or in conflict: not to be claimed. */
  skipped: readonly SkippedRow[]
  /** Types that live instances know; null if one does not say. */
  typesKnown: KnownTypes['elsewhere']
  /** False if the ledger may have lost commits: then nothing is captured until a person has recovered it. */
  hasHistory: boolean
  /** Notes that rows of exactly these types wait and are left to other instances. */
  leave(types: readonly string[]): Promise<void>
  /**
   * Writes records into the ledger; committed when `work` resolves.
   *
   * @returns null: none were written, because the ledger turned out to lack what the outbox's rows tell of
   */
  insert(records: readonly CapturedRecord[]): Promise<Insertion | null>
}

/** What became of records that were written into the ledger, if it is not what they say themselves. */
export interface Insertion {
  /** The ids of rows that differ from those that the ledger knows by their ids: nothing became of them. */
  inConflict: ReadonlySet<string>
  /** The ids of rows whose records ended as discarded now, with the reason. */
  discarded: ReadonlyMap<string, string>
}

export interface WaitingKey {
  key: string
  length: number
  /** True if its head is held for a person. */
  isHeld: boolean
}

export interface FailedRow extends SkippedRow {
  /** For the operator, without the client's data. */
  detail: string
}

/** What change capture (deploy/change-capture) could not do, by table and reason, without the ERP's data. */
export interface CaptureTrouble {
  table: string
  /** Changed rows that were noted instead; 0 if something is not covered. */
  notes: number
  hasUnknown: boolean
  since: string | null
  reason: string
  /** True if a trigger function lends its owner's rights to other roles. */
  insecure: boolean
}

export interface CaptureAgenda {
  /** The row put off that is due first; null if none is. */
  dueId: string | null
  leavesTypes: boolean
  hasNew(): Promise<boolean>
}

/** A report that is due. Its text is read when the row is told, because the record may have moved on by then. */
export interface DueReport {
  submissionId: string
  /** How often in a row the row could not be told. */
  failures: number
}

export interface Report extends DueReport, RowStatus {
  /** Fences the acknowledgement: a later state has its own report. */
  revision: number
}

export interface ReportResult {
  report: Report
  againInMs: number | null
  code: string | null
  problem: RaisedProblem | null
}
