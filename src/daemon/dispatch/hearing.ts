import {
  type Answer,
  type AttemptResult,
  isSuccess,
  type Passage,
  type PostMeaning,
  type Refusal,
  type Submission,
  statusRow,
  wasSuspended,
} from '../../model.ts'

/**
 * Whether a request left and brought no answer of the service's own: a timeout, a lost connection, a gateway's 502, a
 * page that is no JSON where a success was said. A 503 or E003 that stops nobody was taken for one record's own.
 */
export function isSilence(answer: Answer): boolean {
  if (answer.kind === 'no-answer') return answer.sent && !wasSuspended(answer)
  const { post } = statusRow(answer.status)
  if (answer.code === 'E003') return false
  return post === 'in-doubt' || (post === 'taken' && answer.json === undefined)
}

/** Statuses that speak of the way, the rate or the client, and never of the record. */
const isOfTheWay = (status: number): boolean => ofTheWay.has(statusRow(status).post)
const ofTheWay: ReadonlySet<PostMeaning> = new Set(['token-refused', 'forbidden', 'nothing-there', 'throttled'])

/** The passage of a record whose POST the service itself has answered: with an id, or a refusal in JSON. */
export function passageOf(
  { resource, met }: Submission,
  { answer, step }: AttemptResult,
  fingerprint: string | null,
): Passage[] {
  if (answer?.kind !== 'response' || step.pause !== null) return []
  const { status, json, code } = answer
  const accepted = isSuccess(status) && step.change.state !== 'uncertain'
  const refused = status >= 400 && status < 500 && json !== undefined && !isOfTheWay(status) && code !== 'E003'
  return accepted || refused ? [{ resource, met: met?.reason ?? null, judged: fingerprint === null }] : []
}

/** The refusal of a record that was rejected in words that others may be, too. */
export function refusalOf(
  { id: submissionId, resource }: Submission,
  { answer, step }: AttemptResult,
  fingerprint: string | null,
): Refusal[] {
  const { state } = step.change
  if (fingerprint === null || answer?.kind !== 'response' || state !== 'rejected' || isOfTheWay(answer.status))
    return []
  return [{ submissionId, resource, fingerprint, summary: step.cause }]
}
