import type { SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'

/** Why a person cannot settle a submission, to be read after its state; null if that is possible. */
export function whyNotSettled({
  state,
  probing,
  mayHaveArrived,
  answered,
  idByPerson,
  body,
}: SubmissionDetail): string | null {
  if (state === 'rejected' && mayHaveArrived && body === null)
    return ', and does not map, so it can be neither followed nor sent: discard it where it has arrived; otherwise mend the mapping and replay it'
  if (idByPerson && (state === 'completed' || state === 'failed')) return null
  if (probing || state === 'uncertain' || (mayHaveArrived && (state === 'failed' || state === 'rejected'))) return null
  if (state === 'accepted')
    return idByPerson || !answered
      ? null
      : ', not uncertain: the service gave its id and works on it. outboxd discard gives it up'
  return ', not uncertain: there is nothing to settle'
}
