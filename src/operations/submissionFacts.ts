import type { NewerVersion } from '../ledger/documents.ts'
import type { LoggedEvent, SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { isFinalState } from '../model/submission.ts'
import { readRecordWithoutQueriedContent } from '../outbox/readRows.ts'
import { quoteForShell } from '../plainText.ts'
import { formatInstant, formatIsoInstant } from '../time.ts'
import { type Databases, withOutbox } from './databases.ts'

export type SubmissionDetailValue = string | { atMs: number }

export function submissionDetailRows(detail: SubmissionDetail): [name: string, fact: SubmissionDetailValue][] {
  const moment = (atMs: number | null) => (atMs === null ? null : { atMs })
  const all: [string, SubmissionDetailValue | null][] = [
    ['submission', detail.id],
    ['outbox row', detail.outboxId],
    ['type', detail.type],
    ['key', detail.key],
    ['state since', moment(detail.sinceMs)],
    ['created', moment(detail.recordedMs)],
    ['captured', moment(detail.capturedMs)],
    ['attempts', String(detail.attempt)],
    ['last sent', moment(detail.sentMs)],
    [
      'transaction',
      detail.transactionId && `${detail.transactionId}${detail.idByPerson ? ' (given by an operator)' : ''}`,
    ],
    ['may have arrived', detail.mayHaveArrived ? 'yes' : null],
    ['accepted', moment(detail.acceptedMs)],
    ['polls', String(detail.polls)],
    ['ended', isFinalState(detail.state) ? moment(detail.endedMs) : null],
    ['error code', detail.code],
    ['error', detail.error],
    ['idempotency key', detail.idempotencyKey],
    [
      'outbox row says',
      detail.reportDue ? `not yet this state: ${detail.reportTrouble ?? 'it is about to be written back'}` : null,
    ],
    ['write back again', moment(detail.reportAgainMs)],
  ]
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
}

/** Empty if the event's state says all. */
export function eventText({ cause, message, to }: Pick<LoggedEvent, 'cause' | 'message' | 'to'>): string {
  if (message !== null) return message
  if (cause === 'claimed') return 'got a request of the budget'
  return cause === to ? '' : cause.replaceAll('_', ' ')
}

export interface EventDetail {
  name: string
  value: string
  /** True if the value is from the record: its payload, body or result, or an answer of the service. */
  isOfRecord: boolean
}

export function eventDetails({ detail, message }: Pick<LoggedEvent, 'detail' | 'message'>): EventDetail[] {
  if (detail === null) return []
  // Only daemons need the claim, and only `audit` the currency.
  const {
    former,
    claim: _,
    currency: __,
    ...rest
  } = detail as Record<string, unknown> & {
    former?: Record<string, unknown>
  }
  const values = [
    ...Object.entries(rest).map(([key, value]) => ({ key, name: key, value })),
    ...Object.entries(former ?? {}).map(([key, value]) => ({ key, name: `former ${key}`, value })),
  ]
  return values.flatMap(({ key, name, value }) => {
    if (typeof value !== 'string' || message?.includes(value)) return []
    return [{ name, value, isOfRecord: detailsOfRecord.has(key) }]
  })
}

const detailsOfRecord = new Set(['payload', 'body', 'result', 'answer'])

export function missingContentText(
  { emptiedMs, erasedMs, events }: Pick<SubmissionDetail, 'emptiedMs' | 'erasedMs' | 'events'>,
  usualReason: string,
): string {
  if (erasedMs !== null) return `erased ${formatInstant(erasedMs)}`
  if (events[0]?.to === 'discarded') return 'none: nothing is sent for this record'
  return emptiedMs === null ? `none: ${usualReason}` : `emptied ${formatInstant(emptiedMs)}: RETENTION_PAYLOAD_DAYS`
}

export async function tryReadCurrentRow(databases: Databases, outboxId: string): Promise<CurrentRow | null> {
  const record = await withOutbox(databases, (outbox) => readRecordWithoutQueriedContent(outbox, outboxId)).catch(
    () => null,
  )
  return record && { type: record.type, key: record.key, createdAt: record.createdAt }
}

export interface CurrentRow {
  type: string
  key: string | null
  createdAt: string | null
}

/** Compares a record with the row that has its id now; empty without a conflict. */
export function rowConflictLines(
  { conflict, type, key, recordedMs, outboxId }: SubmissionDetail,
  row: CurrentRow | null,
): string[] {
  if (conflict === null) return []
  const facts = (of: { type: string; key: string | null }, created: string) =>
    `created ${created}, type ${of.type}, ${of.key === null ? 'no key' : `key ${of.key}`}`
  return [
    `conflict: the outbox row ${outboxId} is another than the one that was captured: ${conflict}`,
    `  this record     ${facts({ type, key }, formatIsoInstant(recordedMs))}`,
    `  the row now     ${row === null ? 'gone, or unreadable' : facts(row, row.createdAt ?? 'at an unknown time')}`,
    `  ${rowConflictAdvice}`,
  ]
}

export const rowConflictAdvice =
  'If the ERP changed created_at, undo the change. If the row is a different order, give it an unused id: it is then sent as a new record, even if the service has that order already. If all ids started again, let the records of this ledger end, then give the table a ledger of its own (LEDGER_SCHEMA).'

export function mayHaveArrivedCell({ mayHaveArrived }: Pick<ListedSubmission, 'mayHaveArrived'>): string {
  return mayHaveArrived ? 'may have arrived' : '-'
}

export const olderVersionClause = (newer: NewerVersion): string =>
  `is older than outbox:${newer.outboxId}, the newest version of its document, and only that is sent`

/** Returns null if the newest version needs no command, or cannot be sent. */
export function commandToSendNewest({ outboxId, state, hasBody }: NewerVersion): string | null {
  const command = `outboxd replay ${quoteForShell(`outbox:${outboxId}`)}`
  if (!hasBody) return null
  if (state === 'discarded') return `${command} --discarded`
  return state === 'failed' || state === 'rejected' ? command : null
}
