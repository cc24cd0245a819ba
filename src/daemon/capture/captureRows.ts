import type {
  Amounts,
  CapturedRecord,
  CaptureSession,
  ClaimedRow,
  ClaimedRows,
  FieldFault,
  InsertResult,
  OutboxRecord,
  RowOrder,
  RowStatus,
  RowsRequest,
} from '../../model.ts'
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
  /** Resolves to null if this instance's outbox.yaml is not in use. The rows are then unknown. */
  claim(request: RowsRequest): Promise<ClaimedRows | null>
  /** See `claim`. @throws if another session has locked the row */
  claimOne(outboxId: string): Promise<ClaimedRow | null>
  /** True if the row's key is closed, or an earlier row of its key waits. */
  hasToWaitForKey(outboxId: string, order: RowOrder): Promise<boolean>
  readRecordContents(records: readonly OutboxRecord[]): Promise<OutboxRecord[]>
  /** Resolves to null if another instance holds the capture lock. */
  withLock<T>(work: (session: CaptureSession) => Promise<T>): Promise<T | null>
  reportLater(outboxIds: readonly string[]): Promise<void>
  faultOf(error: unknown, isMark: boolean): CaptureFault
  /** Called before the rows are marked, because records in the ledger may already be sent. */
  onCaptured(records: readonly CapturedRecord[]): void
}

export interface RowSource {
  /** Resolves to null if CAPTURE_WINDOW is full, or this instance's outbox.yaml is not in use. */
  claim(session: CaptureSession): Promise<ClaimedRows | null>
  read(rows: ClaimedRows, session: CaptureSession): Promise<CapturedRecord[]>
}

export interface CaptureFailure {
  error: unknown
  /** True if the row is in the ledger and only the mark was refused. */
  isCaptured: boolean
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
 * The ledger commits before the outbox does. After a crash in between, the rows are claimed again, and the ledger
 * ignores the second insert.
 *
 * @throws errors that concern all rows, such as a lost connection
 */
export async function captureRows(deps: CaptureRowsDeps, { claim, read }: RowSource): Promise<CaptureRowsResult> {
  await using claimed = new AsyncDisposableStack()
  let outboxIds: readonly string[] = []
  let captured: (Marking & { rows: ClaimedRows; read: number }) | 'waits' | 'idle' | null = null
  try {
    captured = await deps.withLock(async (session) => {
      if (!session.isHistoryComplete) return 'waits'
      const rows = await claim(session)
      if (rows === null) return 'idle'
      claimed.use(rows)
      outboxIds = rows.outboxIds
      const all = outboxIds.length === 0 ? [] : await read(rows, session)
      outboxIds = all.map((record) => record.outboxId)
      const inserted = all.length === 0 ? nothingInserted : await session.insert(all)
      if (inserted === null) return 'waits'
      const records = all.filter((record) => !inserted.leftOutIds.has(record.outboxId))
      return { rows, read: all.length, records, discarded: inserted.discarded }
    })
    if (captured === null) return { kind: 'busy' }
    if (captured === 'waits' || captured === 'idle') return { kind: captured }
    const { rows, records } = captured
    // If the mark fails, rows in conflict are not among the failed rows, because the ledger does not have them.
    outboxIds = records.map(({ outboxId }) => outboxId)
    const unmarked = records.length === 0 ? [] : await mark(deps, rows, captured)
    return { kind: 'captured', claimed: rows.outboxIds.length, read: captured.read, unmarked }
  } catch (error) {
    const isCaptured = captured !== null
    if (deps.faultOf(error, isCaptured).blame === 'everyone') throw error
    return { kind: 'failed', outboxIds, error, isCaptured }
  }
}

const nothingInserted: InsertResult = { leftOutIds: new Set(), discarded: new Map() }

interface Marking extends Pick<InsertResult, 'discarded'> {
  records: readonly CapturedRecord[]
}

async function mark(
  deps: CaptureRowsDeps,
  rows: ClaimedRows,
  { records, discarded }: Marking,
): Promise<readonly string[]> {
  deps.onCaptured(records)
  const unmarked = await rows.markReturningUnmarkedIds(
    records.map((record) => toCaptureMark(record, discarded.get(record.outboxId) ?? null)),
  )
  if (unmarked.length > 0) await deps.reportLater(unmarked)
  return rows.isUnmarkable ? [] : unmarked
}

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
  const nothing = { type: '', payload: null, createdAt: null, stamp: null, resource: null, body: null }
  const error = `the row cannot be captured: ${why}`
  return { outboxId, key, ...nothing, id: newId(), idempotencyKey: newKey(), tracked: true, sendsOwnId: false, error }
}

/** If the ledger had the record before, the report corrects the mark. */
function toCaptureMark({ outboxId, stamp, error }: CapturedRecord, discardReason: string | null): RowStatus {
  const state = discardReason !== null ? 'discarded' : error === null ? 'queued' : 'rejected'
  return { outboxId, stamp, state, transactionId: null, errorCode: null, error: discardReason ?? error }
}
