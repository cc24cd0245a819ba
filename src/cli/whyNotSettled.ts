import type { SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'

/** Why a submission is not settled by a person's word, to be read after its state; null where it may be. */
export function whyNotSettled({ state, mayHaveArrived, answered, idByPerson }: SubmissionDetail): string | null {
  if (idByPerson && (state === 'completed' || state === 'failed')) return null
  if (state === 'uncertain' || (mayHaveArrived && (state === 'failed' || state === 'rejected'))) return null
  if (state === 'accepted')
    return idByPerson || !answered
      ? null
      : ', not uncertain: the service gave its id and works on it. outboxd discard gives it up'
  return ', not uncertain: there is nothing to settle'
}
