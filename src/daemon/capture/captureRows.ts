import type { CaptureSession } from '../../ledger/capture.ts'
import type {
  Amounts,
  CapturedRecord,
  FieldFault,
  InsertResult,
  OutboxRecord,
  RowOrder,
  RowStatus,
  RowsRequest,
} from '../../model/outbox.ts'
import type { ClaimedRow, ClaimedRows } from '../../outbox/claimRows.ts'
import type { Database } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'

export interface CaptureFault {
  blame: 'moment' | 'piece' | 'type' | 'everyone'
  /** The record type whose query failed, if a query is the cause. */
  type: string | null
  /** This text may quote the row, so only the ledger gets it. */
  message: string
  /** SQLSTATE or error class, without the row's data. */
  code: string
}

export interface CaptureRowsDeps extends RecordMakerDeps {
  claim(db: Database, request: RowsRequest): Promise<ClaimedRows>
  /** @throws if another session has locked the row */
  claimOne(db: Database, outboxId: string): Promise<ClaimedRow>
  readClaimedRows(db: Database, rows: ClaimedRows): Promise<OutboxRecord[]>
  /** Returns the ids of rows that still have to be written. */
  markRows(db: Database, rows: ClaimedRows, statuses: readonly RowStatus[]): Promise<string[]>
  /** True if the row's key is closed, or an earlier row of its key waits. */
  hasToWaitForKey(outboxId: string, order: RowOrder): Promise<boolean>
  readRecordContents(records: readonly OutboxRecord[]): Promise<OutboxRecord[]>
  /** Resolves to null if another instance holds the capture lock. */
  withLock<T>(work: (session: CaptureSession) => Promise<T>): Promise<T | null>
  reportLater(outboxIds: readonly string[]): Promise<void>
  faultOf(error: unknown, isMark: boolean): CaptureFault
  /** Called after the COMMIT. */
  onCaptured(records: readonly CapturedRecord[]): void
}

export interface RowSource {
  /** Resolves to null if CAPTURE_WINDOW is full. */
  claim(session: CaptureSession): Promise<ClaimedRows | null>
  read(rows: ClaimedRows, session: CaptureSession): Promise<CapturedRecord[]>
}

export interface CaptureFailure {
  error: unknown
  /** True if the table refused a mark. The row is then not rejected, because its content is not the cause. */
  isMark: boolean
}

export type CaptureRowsResult =
  /** See `CaptureRoundResult`. */
  | { kind: 'busy' | 'waits' | 'idle' }
  /**
   * `read`: how many of the `claimed` rows were read. `unmarked`: ids of captured rows whose mark the table ignored.
   */
  | { kind: 'captured'; claimed: number; read: number; unmarked: readonly string[] }
  | ({ kind: 'failed'; outboxIds: readonly string[] } & CaptureFailure)

/**
 * Captures and marks rows in one transaction.
 *
 * @throws errors that concern all rows, such as a lost connection
 */
export async function captureRows(deps: CaptureRowsDeps, { claim, read }: RowSource): Promise<CaptureRowsResult> {
  let outboxIds: readonly string[] = []
  let isMark = false
  let captured: Captured | 'waits' | 'idle' | null
  try {
    captured = await deps.withLock(async (session) => {
      if (!session.mayCapture) return 'waits'
      const rows = await claim(session)
      if (rows === null) return 'idle'
      outboxIds = rows.outboxIds
      const all = outboxIds.length === 0 ? [] : await read(rows, session)
      outboxIds = all.map((record) => record.outboxId)
      const inserted = all.length === 0 ? nothingInserted : await session.insert(all)
      const records = all.filter((record) => !inserted.leftOutIds.has(record.outboxId))
      // Rows in conflict are not marked, so they are not among the failed rows.
      outboxIds = records.map((record) => record.outboxId)
      isMark = true // also for the COMMIT, where deferred triggers of the table run
      const unmarked = records.length === 0 ? [] : await deps.markRows(session.db, rows, toMarks(records, inserted))
      return { rows, read: all.length, records, unmarked }
    })
  } catch (error) {
    if (deps.faultOf(error, isMark).blame === 'everyone') throw error
    return { kind: 'failed', outboxIds, error, isMark }
  }
  if (captured === null) return { kind: 'busy' }
  if (captured === 'waits' || captured === 'idle') return { kind: captured }
  const { rows, records, unmarked } = captured
  if (records.length > 0) deps.onCaptured(records)
  if (unmarked.length > 0) await deps.reportLater(unmarked)
  return {
    kind: 'captured',
    claimed: rows.outboxIds.length,
    read: captured.read,
    unmarked: rows.table.form === 'marked' ? unmarked : [],
  }
}

interface Captured {
  rows: ClaimedRows
  read: number
  records: readonly CapturedRecord[]
  unmarked: readonly string[]
}

const toMarks = (records: readonly CapturedRecord[], { discarded }: InsertResult): RowStatus[] =>
  records.map((record) => toCaptureMark(record, discarded.get(record.outboxId) ?? null))

const nothingInserted: InsertResult = { leftOutIds: new Set(), discarded: new Map() }

type MappedRecord =
  | { kind: 'mapped'; resource: Resource; tracked: boolean; sendsOwnId: boolean; body: string; amounts: Amounts }
  | { kind: 'refused'; resource: Resource | null; reason: string; fieldErrors?: readonly FieldFault[] }

export interface RecordMakerDeps {
  map(record: OutboxRecord, submissionId: string): MappedRecord
  newId(): string
  newKey(): string
}

export function toCapturedRecord({ map, newId, newKey }: RecordMakerDeps, row: OutboxRecord): CapturedRecord {
  const id = newId()
  const { unreadable: _, noRecord = null, ...record } = row
  const kept = { ...record, id, idempotencyKey: newKey() }
  if (noRecord !== null)
    return { ...kept, resource: null, body: null, tracked: true, sendsOwnId: false, error: null, discarded: noRecord }
  const mapped = map(row, id)
  if (mapped.kind === 'mapped') {
    const { resource, tracked, sendsOwnId, body, amounts } = mapped
    return { ...kept, resource, tracked, sendsOwnId, body, amounts, error: null }
  }
  const { resource, reason: error, fieldErrors = [] } = mapped
  return { ...kept, resource, tracked: true, sendsOwnId: false, body: null, error, fieldErrors }
}

export function toRejectedRecord(
  { newId, newKey }: RecordMakerDeps,
  { outboxId, key, why }: { outboxId: string; key: string | null; why: string },
): CapturedRecord {
  const nothing = { type: '', payload: null, createdAt: null, created: null, resource: null, body: null }
  const error = `the row cannot be captured: ${why}`
  return { outboxId, key, ...nothing, id: newId(), idempotencyKey: newKey(), tracked: true, sendsOwnId: false, error }
}

/** If the ledger had the record before, the report corrects the mark. */
function toCaptureMark({ outboxId, created, error }: CapturedRecord, discardReason: string | null): RowStatus {
  const state = discardReason !== null ? 'discarded' : error === null ? 'queued' : 'rejected'
  return { outboxId, created, state, transactionId: null, errorCode: null, error: discardReason ?? error }
}
