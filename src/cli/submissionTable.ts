import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { renderTable, type Terminal, truncate } from './table.ts'
import { showTime } from './time.ts'

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

/** What whoever is about to decide on it must know beside its state. */
export function noteOn({ mayHaveArrived }: Pick<ListedSubmission, 'mayHaveArrived'>): string {
  return mayHaveArrived ? 'may have arrived' : '-'
}
