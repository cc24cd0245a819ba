import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { csvHead, csvLines } from './spreadsheet.ts'
import { escapeControl, truncate } from './table.ts'
import { isoTime } from './time.ts'

/** The column that whoever knows fills in, for `outboxd resolve --file`: a transaction's id, or `not-arrived`. */
export const answerColumn = 'arrived_as'

/**
 * Submissions as a table for a spreadsheet (RFC 4180), to give to whoever can look at the service: when each was sent and
 * under which idempotency key, nothing of what it holds, and an empty column for the answer. What a spreadsheet would
 * calculate is marked with an apostrophe; what moves a terminal's cursor is written out, but in ids, which are read again.
 */
export function submissionCsv(submissions: readonly ListedSubmission[]): string {
  return `${csvHead(columns)}${csvLines(submissions.map(rowOf), columns)}`
}

const columns = [
  'outbox_id',
  answerColumn,
  'state',
  'type',
  'key',
  'sent',
  'idempotency_key',
  'attempts',
  'transaction_id',
  'code',
  'error',
  'since',
  'recorded',
  'submission_id',
] as const

function rowOf(submission: ListedSubmission): Record<(typeof columns)[number], string> {
  return {
    outbox_id: submission.outboxId,
    [answerColumn]: '',
    state: submission.state,
    type: escapeControl(submission.type),
    key: escapeControl(submission.key ?? ''),
    sent: submission.sentMs === null ? '' : isoTime(submission.sentMs),
    idempotency_key: submission.idempotencyKey,
    attempts: String(submission.attempts),
    transaction_id: submission.transactionId ?? '',
    code: escapeControl(submission.code ?? ''),
    error: escapeControl(truncate(submission.error ?? '', 500)),
    since: isoTime(submission.sinceMs),
    recorded: isoTime(submission.recordedMs),
    submission_id: submission.id,
  }
}
