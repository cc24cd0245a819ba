import type { Resource } from '../resources.ts'
import type { RaisedProblem } from './problem.ts'
import type { State } from './submission.ts'

/** A row of the outbox, not parsed, with each digit as the ERP wrote it. */
export interface OutboxRecord {
  outboxId: string
  type: string
  key: string | null
  /** Null if `unreadable` says why. */
  payload: string | null
  unreadable: string | null
  /** ISO 8601 with microseconds. */
  createdAt: string | null
  /** The creation time as the table writes it, which tells the row from another with the same id. */
  created: string | null
  /** The id of the document that the row stands for; null if the row is the record. */
  document?: string | null
  /** Says why nothing is sent: the document was deleted or does not meet the condition. */
  noRecord?: string | null
}

export interface RowsRequest {
  limit: number
  keyRowsMax: number
  exceptKeys: readonly string[]
  /** These rows are not taken, and block the later rows of their keys. */
  skippedIds: readonly string[]
  /** Types whose query failed. Their rows are not taken, and block the later rows of their keys. */
  heldTypes: readonly string[]
}

export interface RowStatus {
  outboxId: string
  /** Null if any row with the id may be written. */
  created?: string | null
  state: State
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

export type RowOutcome =
  /** The row was written, or already says completed. */
  | 'written'
  /** The row was deleted, or its partition is detached. */
  | 'gone'
  /** A different row has the id. */
  | 'another'
  /** Another session has locked the row, or row-level security hides it from updates. */
  | 'locked'
  /** A trigger suppressed the update, or set the state back. */
  | 'unchanged'

export interface FieldFault {
  /** The name in the mapping file, or `payload`. */
  field: string
  kind: string
}

/** Decimal fields by name, with the digits as sent. */
export type Amounts = Readonly<Record<string, string>>

/** What is sent for a document: the first version that meets the condition, or each version. */
export type Changes = 'once' | 'each'

export interface CapturedRecord {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource | null
  payload: string | null
  /** Null if the record was rejected. */
  body: string | null
  tracked: boolean
  sendsOwnId: boolean
  idempotencyKey: string
  createdAt: string | null
  created: string | null
  error: string | null
  fieldErrors?: readonly FieldFault[]
  amounts?: Amounts | null
  /** The id of the document of which this is a version. */
  document?: string | null
  /** Of a version: two with the same digest are equal. Null if nobody knows what was sent. */
  digest?: string | null
  /** True if the record is rejected because the document was sent before. */
  changedAfterSent?: boolean
  /** Why the record ends as discarded. */
  discarded?: string | null
  /** Why the record may have been sent before. */
  doubt?: string | null
}

export interface WaitingKey {
  key: string
  length: number
  isHeld: boolean
  /** True if all records that wait are versions of documents: a further row replaces its version. */
  isOfDocuments: boolean
}

/** The report's text is read when the row is written, because the record may change before. */
export interface DueReport {
  submissionId: string
  /** Failed tries to write back, in a row. */
  failures: number
}

export interface Report extends DueReport, RowStatus {
  /** Rises with each step of the record. If a later step came meanwhile, this report's result is dropped: that step has its own. */
  revision: number
}

export interface ReportResult {
  report: Report
  againInMs: number | null
  code: string | null
  problem: RaisedProblem | null
}
