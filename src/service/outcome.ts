import { type Answer, type Outcome, statusRow } from '../model.ts'

/** How a request ended, by the names that the metrics use. */
export function outcomeOf(answer: Answer): Outcome {
  if (answer.kind === 'no-answer') return answer.cause === 'suspended' ? 'timeout' : answer.cause
  const { outcome, heedsCode } = statusRow(answer.status)
  return heedsCode && answer.code === 'E003' && outcome !== 'ok' ? 'unavailable' : outcome
}
