import { readSubmissionDetail, type SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import { findSubmissions, type ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type Holder, readOtherTransactionHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { Database } from '../postgres/database.ts'
import { resourceNames } from '../resources.ts'
import type { Databases } from './databases.ts'
import type { AnsweredLine } from './readAnswersFile.ts'

export interface SettlingLine {
  line: number
  submission: ListedSubmission
  transaction: TransactionRef | null
  /** True if an operator gave a different answer before. */
  isCorrection: boolean
}

export interface SkippedLine {
  line: number
  submission: ListedSubmission
  reason: string
}

export type MatchedAnswers =
  | { kind: 'value'; settling: SettlingLine[]; skipped: SkippedLine[] }
  | { kind: 'invalid'; problems: string[] }

export async function matchAnswersToRecords(
  databases: Databases,
  lines: readonly AnsweredLine[],
  onLine: (index: number) => void,
): Promise<MatchedAnswers> {
  const settling: SettlingLine[] = []
  const skipped: SkippedLine[] = []
  const problems: string[] = []
  const lineOf = new Map<string, number>()
  const isFirst = (line: number, what: string, name: string) => {
    const before = lineOf.get(what)
    if (before === undefined) lineOf.set(what, line)
    else problems.push(`line ${line}: ${name} is already on line ${before}`)
    return before === undefined
  }
  for (const [index, answered] of lines.entries()) {
    onLine(index)
    const { line, arrivedAs } = answered
    const submission = await findSubmission(databases.ledger, answered)
    const detail =
      typeof submission === 'string'
        ? null
        : await readSubmissionDetail(databases.ledger, submission.id, databases.config.keyOnFailure)
    if (typeof submission === 'string' || detail === null) {
      problems.push(`line ${line}: ${typeof submission === 'string' ? submission : 'its record was pruned just now'}`)
      continue
    }
    if (!isFirst(line, submission.id, `outbox:${submission.outboxId}`)) continue
    const transaction = arrivedAs === null ? null : toTransactionRef(detail, arrivedAs)
    if (transaction !== null && !isFirst(line, `${transaction.resource} ${arrivedAs}`, transaction.transactionId))
      continue
    const other =
      transaction === null ? null : await readOtherTransactionHolder(databases.ledger, transaction, submission.id)
    const why = whyAnswerSkipped(detail, answered)
    const contradiction = contradictionOf(detail, answered)
    if (other !== null) problems.push(`line ${line}: ${transactionHolderMessage(other)}`)
    else if (why !== null) skipped.push({ line, submission, reason: why })
    else if (contradiction !== null) problems.push(`line ${line}: ${contradiction}`)
    else settling.push({ line, submission, transaction, isCorrection: detail.idByPerson })
  }
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'value', settling, skipped }
}

/** Returns the problem if the line does not name exactly one submission. */
async function findSubmission(
  ledger: Database,
  { outboxId, submissionId }: AnsweredLine,
): Promise<ListedSubmission | string> {
  const [first, second] =
    submissionId !== null
      ? await findSubmissions(ledger, { kind: 'range', from: submissionId, to: submissionId }, 2)
      : await findSubmissions(ledger, { kind: 'outbox', value: outboxId ?? '' }, 2)
  if (first === undefined) return `there is no record ${submissionId ?? `outbox:${outboxId}`}`
  if (second !== undefined) return `outbox:${outboxId} is ${first.id} and ${second.id}: fill in submission_id`
  // Sorting only one column of a spreadsheet gives every record the wrong answer.
  if (outboxId !== null && first.outboxId !== outboxId)
    return `${first.id} is outbox:${first.outboxId}, not outbox:${outboxId}: was one column sorted alone, or the id changed by a spreadsheet?`
  return first
}

export const toTransactionRef = ({ resource }: SubmissionDetail, transactionId: string): TransactionRef => ({
  resource: resource ?? resourceNames[0],
  transactionId,
})

export const transactionHolderMessage = ({ transactionId, outboxId }: Holder) =>
  `${transactionId} is the transaction of outbox:${outboxId} (\`outboxd show outbox:${outboxId}\`)`

function contradictionOf(detail: SubmissionDetail, { arrivedAs, listedAs }: AnsweredLine): string | null {
  if (listedAs === null || listedAs === detail.transactionId || listedAs === arrivedAs) return null
  const answer = arrivedAs === null ? 'that it did not arrive' : `that it arrived as ${arrivedAs}`
  return `it contradicts itself about outbox:${detail.outboxId}: arrived_as says ${answer}, transaction_id says ${listedAs}`
}

/**
 * Says why a record is left; null if it is not. The file is older than the ledger, so it neither undoes later steps nor
 * sends again on an old answer.
 */
export function whyAnswerSkipped(
  detail: SubmissionDetail,
  { arrivedAs, attempts, listedAs }: AnsweredLine,
): string | null {
  const { outboxId, state, transactionId, attempt, idByPerson, events } = detail
  if (arrivedAs !== null && transactionId === arrivedAs && (state === 'accepted' || state === 'completed'))
    return `is already ${state} as ${arrivedAs}`
  const why = whyNotSettled(detail)
  if (why !== null) return `is ${state}${why}`
  // An earlier attempt says nothing about the one in doubt.
  if (attempts !== attempt) return 'was sent again after the file was made: make a new file'
  const oneByOne = `outboxd resolve outbox:${outboxId} ${arrivedAs === null ? '--not-arrived' : `--arrived ${arrivedAs}`}`
  if (idByPerson && listedAs !== transactionId)
    return `is ${state}; its transaction id ${transactionId} was given by an operator. If it is wrong: ${oneByOne}`
  return events.some(({ cause }) => cause === `resolved: taken back that it is ${arrivedAs}`)
    ? `is not ${arrivedAs}, an operator has said. If it is after all: ${oneByOne}`
    : null
}

export function whyNotSettled({
  state,
  probing,
  mayHaveArrived,
  answered,
  idByPerson,
  body,
}: SubmissionDetail): string | null {
  if (state === 'rejected' && mayHaveArrived && body === null)
    return ' and does not map. If it has arrived, discard it. If not, fix the mapping and replay it'
  if (idByPerson && (state === 'completed' || state === 'failed')) return null
  if (probing || state === 'uncertain' || (mayHaveArrived && (state === 'failed' || state === 'rejected'))) return null
  if (state === 'accepted')
    return idByPerson || !answered
      ? null
      : ', not uncertain: the service gave its id and works on it. `outboxd discard` gives it up'
  return ', not uncertain: there is nothing to settle'
}
