import type { Cause } from '../../ledger/operator/readCauses.ts'
import type { ListedSubmission, SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import { csvHead, csvLines } from '../../operations/spreadsheet.ts'
import { noteOn } from '../../operations/submissionFacts.ts'
import { escapeControl, renderTable, type Terminal, truncate } from '../../plainText.ts'
import { isoTime, isoTimeOrNull, showTime } from '../../time.ts'

/** The table of `list` and of previews. */
export function submissionTable(submissions: readonly ListedSubmission[], terminal: Terminal | null = null): string {
  return renderTable(
    ['ID', 'OUTBOX', 'TYPE', 'KEY', 'STATE', 'CODE', 'SINCE', 'NOTE', 'ERROR'],
    submissions.map((submission) => [
      submission.id,
      truncate(submission.outboxId, 36),
      truncate(submission.type, 24),
      truncate(submission.key ?? '-', 24),
      submission.state,
      truncate(submission.code ?? '-', 16),
      showTime(submission.sinceMs),
      noteOn(submission),
      truncate(submission.error ?? '', 80),
    ]),
    terminal,
  )
}

/** A listed submission as `--json` has it: times as ISO 8601, under their names without the unit. */
export function submissionJson(submission: ListedSubmission) {
  const { id, outboxId, type, key, state, code, error, mayHaveArrived, sinceMs } = submission
  const { transactionId, idempotencyKey, attempts } = submission
  return {
    ...{ id, outboxId, type, key, state, code, since: isoTime(sinceMs), mayHaveArrived, error },
    ...{ transactionId, idempotencyKey, attempts },
    recorded: isoTime(submission.recordedMs),
    captured: isoTime(submission.capturedMs),
    sent: isoTimeOrNull(submission.sentMs),
    accepted: isoTimeOrNull(submission.acceptedMs),
    ended: isoTimeOrNull(submission.endedMs),
  }
}

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

/** What a list by cause was asked for. */
export interface AskedFilters {
  filter: SubmissionFilter
  containing: string | null
}

/** One line a cause, with the command that takes care of it. */
export function causesTable(causes: readonly Cause[], asked: AskedFilters): string {
  return renderTable(
    ['COUNT', 'CODE', 'STATE', 'SINCE', 'TYPE', 'REASON', 'COMMAND'],
    causes.map((cause) => [
      String(cause.count),
      truncate(cause.code ?? '-', 16),
      cause.mayHaveArrived ? `${cause.state}, may have arrived` : cause.state,
      showTime(cause.firstMs),
      truncate(cause.types.join(','), 24),
      truncate(cause.shape, 80) || '-',
      commandFor(cause, asked),
    ]),
  )
}

export function causeJson(cause: Cause, asked: AskedFilters) {
  const { count, code, state, mayHaveArrived, types, shape, firstMs, lastMs, firstOutboxId } = cause
  return {
    ...{ cause: cause.cause, count, state, code, mayHaveArrived, reason: shape, types },
    since: isoTime(firstMs),
    last: isoTime(lastMs),
    firstOutboxId,
    command: commandFor(cause, asked),
  }
}

/** The command for a cause's submissions, with the filters that match exactly these. Pure. */
export function commandFor({ cause, state, mayHaveArrived }: Cause, asked: AskedFilters): string {
  const filters = [`--state ${state} --cause ${cause}`, ...filterArguments(asked)].join(' ')
  const isReplayable = (state === 'failed' || state === 'rejected') && !mayHaveArrived
  if (isReplayable) return `outboxd replay ${filters}`
  if (state === 'uncertain' || mayHaveArrived)
    return `outboxd list ${filters} --csv > ask.csv, then outboxd resolve --file ask.csv`
  return `outboxd list ${filters}`
}

function filterArguments({ filter, containing }: AskedFilters): string[] {
  const given: [string, string | null][] = [
    ['type', filter.type],
    ['key', filter.key],
    ['since', isoTimeOrNull(filter.sinceMs)],
    ['until', isoTimeOrNull(filter.untilMs)],
    ['transaction', filter.transactionId],
    ['containing', containing],
  ]
  return given.flatMap(([name, value]) => (value === null ? [] : [`--${name} ${quoted(value)}`]))
}

/** As a shell takes it for one word. */
const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)
