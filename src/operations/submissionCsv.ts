import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { escapeControl, truncateToOneLine } from '../plainText.ts'
import { formatIsoInstant, formatIsoInstantOrNull } from '../time.ts'
import { csvLine } from './spreadsheet.ts'

const csvColumns: Readonly<Record<string, (submission: ListedSubmission) => string>> = {
  outbox_id: ({ outboxId }) => outboxId,
  /** The column that you fill in for `outboxd resolve --file`. */
  arrived_as: () => '',
  state: ({ state }) => state,
  type: ({ type }) => escapeControl(type),
  key: ({ key }) => escapeControl(key ?? ''),
  sent: ({ sentMs }) => formatIsoInstantOrNull(sentMs) ?? '',
  idempotency_key: ({ idempotencyKey }) => idempotencyKey,
  attempts: ({ attempts }) => String(attempts),
  transaction_id: ({ transactionId }) => transactionId ?? '',
  code: ({ code }) => escapeControl(code ?? ''),
  error: ({ error }) => escapeControl(truncateToOneLine(error ?? '', 500)),
  since: ({ sinceMs }) => formatIsoInstant(sinceMs),
  recorded: ({ recordedMs }) => formatIsoInstant(recordedMs),
  submission_id: ({ id }) => id,
}

/**
 * Makes a CSV without contents for the operator of the service. Ids are not escaped, because `resolve --file` reads
 * them again.
 */
export const submissionCsv = (submissions: readonly ListedSubmission[]): string =>
  [
    csvLine(Object.keys(csvColumns)),
    ...submissions.map((submission) => csvLine(Object.values(csvColumns).map((cellOf) => cellOf(submission)))),
  ].join('')
