import type { SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { AnsweredLine } from './readAnswersFile.ts'
import { whyNotSettled } from './whyNotSettled.ts'

/**
 * Why a record stays as it is although a line of a file answers for it; null where it does not. A file is older than what
 * it is held against: what was done since then is not undone by it, and nothing is sent again on an answer of before. Pure.
 */
export function whySkipped(detail: SubmissionDetail, answered: AnsweredLine): string | null {
  const { state, transactionId, attempt } = detail
  const { arrivedAs, attempts } = answered
  if (arrivedAs !== null && transactionId === arrivedAs && (state === 'accepted' || state === 'completed'))
    return `is ${state} as ${arrivedAs} already`
  const why = whyNotSettled(detail)
  if (why !== null) return `is ${state}${why}`
  // What was true of an earlier attempt says nothing of the one in doubt now.
  if (attempts !== null && attempts !== attempt) return 'was sent again since the file was made: ask again'
  return whySaidOtherwise(detail, answered) ?? (arrivedAs === null ? whyNotSentAgain(detail, attempts) : null)
}

/** A person has settled it, and the line does not show that it knows of that. */
function whySaidOtherwise(
  { outboxId, state, transactionId, idByPerson, events }: SubmissionDetail,
  { arrivedAs, attempts, besides }: AnsweredLine,
): string | null {
  const knows = attempts !== null && besides.some((beside) => beside === transactionId)
  const oneByOne = `outboxd resolve outbox:${outboxId} ${arrivedAs === null ? '--not-arrived' : `--arrived ${arrivedAs}`}`
  if (idByPerson && !knows) return `is ${state} as ${transactionId}, which a person said: ${oneByOne}, if that is wrong`
  return events.some(({ cause }) => cause === `resolved: taken back that it is ${arrivedAs}`)
    ? `is not ${arrivedAs}, a person has said: ${oneByOne}, if it is after all`
    : null
}

/** Without its count a line may be from before the last attempt. That it arrived, instead, is true of whichever. */
function whyNotSentAgain({ state, attempt, events }: SubmissionDetail, attempts: number | null): string | null {
  // The count alone does not tell: a record that was recovered begins at 0.
  const isFirst =
    attempt === 1 && !events.some(({ from, to }) => to === 'queued' && from !== null && from !== 'sending')
  return attempts !== null || isFirst
    ? null
    : `may have been sent more than once, and the file does not say which attempt it answers: outboxd list --state ${state} --csv makes one that does`
}
