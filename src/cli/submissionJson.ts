import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { isoTime, isoTimeOrNull } from './time.ts'

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
