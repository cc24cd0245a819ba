import type {
  Amounts,
  CapturedRecord,
  CaptureSession,
  ClaimedRows,
  FieldFault,
  Insertion,
  OutboxRecord,
  RowStatus,
  RowsRequest,
} from '../../model.ts'
import type { Resource } from '../../resources.ts'

/** Why work on rows failed, as the composition reads it from an error. */
export interface Fault {
  /** Whether it passes by itself, or is about this row, or about everyone (src/postgres/sqlState.ts). */
  blame: 'moment' | 'piece' | 'everyone'
  /** The error in words, which may quote the row: only for the ledger. */
  message: string
  /** Its SQLSTATE or class, which says nothing of the row. */
  code: string
}

export interface CaptureRowsDeps extends RecordMaker {
  claim(request: RowsRequest): Promise<ClaimedRows>
  claimOne(outboxId: string): Promise<ClaimedRows>
  /** Reads the contents of records that a query gives; returns others as they are. @returns the first of them, at least one */
  readContents(records: readonly OutboxRecord[]): Promise<OutboxRecord[]>
  /** Runs the work while no other instance captures, in a transaction of the ledger; null if another one does. */
  withLock<T>(work: (session: CaptureSession) => Promise<T>): Promise<T | null>
  /** These rows do not say that they are taken, so we tell them later. */
  reportLater(outboxIds: readonly string[]): Promise<void>
  /** @param isMark it was a mark that failed, which the table's own triggers may do */
  faultOf(error: unknown, isMark: boolean): Fault
  /** Records are in the ledger and may be sent; their rows are yet to be marked. */
  onCaptured(records: readonly CapturedRecord[]): void
}

export interface RowSelection {
  /** Null if there is no room for any. */
  claim(session: CaptureSession): Promise<ClaimedRows | null>
  read(rows: ClaimedRows, session: CaptureSession): Promise<CapturedRecord[]>
}

/** How rows failed, and how far they had come. */
export interface CaptureFailure {
  error: unknown
  /** In the ledger: only the mark was refused. */
  isCaptured: boolean
}

export type CaptureRowsResult =
  /** Another instance captures. */
  | { kind: 'busy' }
  /** The ledger went back in time. */
  | { kind: 'waits' }
  /**
   * `claimed` rows, of which so many were `read`; the others are left for the next time. `unmarked`: rows that are in the
   * ledger and still say that they wait, since the table ignored the mark.
   */
  | { kind: 'taken'; claimed: number; read: number; unmarked: readonly string[] }
  /** `outboxIds`: the rows in hand, as far as that was known. */
  | ({ kind: 'failed'; outboxIds: readonly string[] } & CaptureFailure)

/**
 * Claims rows, reads them, keeps them in the ledger and marks them.
 *
 * The ledger commits before the outbox does. A crash in between leaves rows that are new and kept: they are claimed
 * again, which changes nothing in the ledger.
 *
 * @throws what is about everyone, such as a database that is away
 */
export async function captureRows(deps: CaptureRowsDeps, { claim, read }: RowSelection): Promise<CaptureRowsResult> {
  await using claimed = new AsyncDisposableStack()
  let outboxIds: readonly string[] = []
  let captured: (Marking & { rows: ClaimedRows | null; read: number }) | 'waits' | null = null
  try {
    captured = await deps.withLock(async (session) => {
      if (!session.hasHistory) return 'waits'
      const rows = await claim(session)
      if (rows === null) return { rows, read: 0, records: [], discarded: new Map() }
      claimed.use(rows)
      outboxIds = rows.outboxIds
      const all = outboxIds.length === 0 ? [] : await read(rows, session)
      outboxIds = all.map((record) => record.outboxId)
      const inserted = all.length === 0 ? nothingInserted : await session.insert(all)
      if (inserted === null) return 'waits'
      const records = all.filter((record) => !inserted.inConflict.has(record.outboxId))
      return { rows, read: all.length, records, discarded: inserted.discarded }
    })
    if (captured === null) return { kind: 'busy' }
    if (captured === 'waits') return { kind: 'waits' }
    const { rows, records } = captured
    const unmarked = rows === null || records.length === 0 ? [] : await mark(deps, rows, captured)
    return { kind: 'taken', claimed: rows?.outboxIds.length ?? 0, read: captured.read, unmarked }
  } catch (error) {
    const isCaptured = captured !== null
    if (deps.faultOf(error, isCaptured).blame === 'everyone') throw error
    return { kind: 'failed', outboxIds, error, isCaptured }
  }
}

const nothingInserted: Insertion = { inConflict: new Set(), discarded: new Map() }

/** The records whose rows are to be marked. */
interface Marking extends Pick<Insertion, 'discarded'> {
  records: readonly CapturedRecord[]
}

/** @returns the rows that still say that they wait, since the table ignored the mark */
async function mark(
  deps: CaptureRowsDeps,
  rows: ClaimedRows,
  { records, discarded }: Marking,
): Promise<readonly string[]> {
  deps.onCaptured(records)
  const unmarked = await rows.mark(records.map((record) => rowStatus(record, discarded.get(record.outboxId) ?? null)))
  if (unmarked.length > 0) await deps.reportLater(unmarked)
  return rows.isRemembered ? [] : unmarked
}

/** What the mapping makes of a record. */
export type MappedRecord =
  | { kind: 'mapped'; resource: Resource; tracked: boolean; sendsOwnId: boolean; body: string; amounts: Amounts }
  /** Its data is invalid, its type has no mapping, or it cannot be read: why, for the person who mends it. */
  | { kind: 'refused'; resource: Resource | null; reason: string; fieldErrors?: readonly FieldFault[] }

export interface RecordMaker {
  map(record: OutboxRecord, submissionId: string): MappedRecord
  newId(): string
  newKey(): string
}

export function captureRecord({ map, newId, newKey }: RecordMaker, row: OutboxRecord): CapturedRecord {
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

/** A row of which nothing but the id may be touched, as rejected: reading it fails, or writing what was read. */
export function unreadableRecord({ newId, newKey }: RecordMaker, outboxId: string, why: string): CapturedRecord {
  const nothing = { type: '', key: null, payload: null, createdAt: null, stamp: null, resource: null, body: null }
  const error = `the row cannot be captured: ${why}`
  return { outboxId, ...nothing, id: newId(), idempotencyKey: newKey(), tracked: true, sendsOwnId: false, error }
}

/**
 * What a row is told as it is taken. One that the ledger had before is told so, and the report corrects it.
 *
 * @param discarded why the record ended as discarded just now; null: it did not
 */
export function rowStatus({ outboxId, stamp, error }: CapturedRecord, discarded: string | null): RowStatus {
  const state = discarded !== null ? 'discarded' : error === null ? 'queued' : 'rejected'
  return { outboxId, stamp, state, transactionId: null, errorCode: null, error: discarded ?? error }
}
