import type { Amounts, CapturedRecord, FieldFault, OutboxRecord, RowStatus } from '../../model.ts'
import type { Resource } from '../../resources.ts'

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
  const mapped = map(row, id)
  const { unreadable: _, ...record } = row
  const kept = { ...record, id, idempotencyKey: newKey() }
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

export function rowStatus({ outboxId, stamp, error }: CapturedRecord): RowStatus {
  return { outboxId, stamp, state: error === null ? 'queued' : 'rejected', transactionId: null, errorCode: null, error }
}
