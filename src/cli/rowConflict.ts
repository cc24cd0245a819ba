import type { SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { isoTime } from './time.ts'

/** The row that has the id now, where it is another than the one that was taken. */
export async function readRowNow(store: OperatorStore, outboxId: string): Promise<OtherRow | null> {
  const record = await store.outbox.readRecord(outboxId).catch(() => null)
  return record && { type: record.type, key: record.key, createdAt: record.createdAt }
}

export interface OtherRow {
  type: string
  key: string | null
  createdAt: string | null
}

/** Says that a record and its outbox row are no longer the same, a line each; nothing where they are. Pure. */
export function conflictLines(
  { conflict, type, key, recordedMs, outboxId }: SubmissionDetail,
  row: OtherRow | null,
): string[] {
  if (conflict === null) return []
  const facts = (of: { type: string; key: string | null }, recorded: string) =>
    `recorded ${recorded}, type ${of.type}, ${of.key === null ? 'no key' : `key ${of.key}`}`
  return [
    `conflict: this is not the record of the outbox row ${outboxId} as it is now: ${conflict}`,
    `  this record     ${facts({ type, key }, isoTime(recordedMs))}`,
    `  the row now     ${row === null ? 'it is gone, or cannot be read' : facts(row, row.createdAt ?? 'at a time it does not say')}`,
    `  ${conflictAdvice}`,
  ]
}

/** How a conflict of a row ends. Pure. */
export const conflictAdvice =
  'If the ERP edited the row: undo a change of created_at; outboxd adopt --same accepts any other edit. Once its record is rejected or failed, outboxd replay --refresh sends the row as it is. If the row is another order: give it an id that was never used. A row with a new id is a new record and is sent, also if the service has that order already. Only if all ids began anew: outboxd adopt --new, which sends every row that waits in the table, also those that were sent before.'
