import { type Answer, isSuccess, type Outcome } from '../model.ts'

/** How a request ended, by the names that the metrics use. */
export function outcomeOf(answer: Answer): Outcome {
  if (answer.kind === 'no-answer') return answer.cause
  const { status, code } = answer
  if (isSuccess(status)) return 'ok'
  if (code === 'E003' || status === 503) return 'unavailable'
  if (status === 429) return 'throttled'
  if (status === 401 || status === 403 || (status >= 300 && status < 400)) return 'unauthorized'
  return status >= 400 && status < 500 ? 'rejected' : 'server_error'
}
