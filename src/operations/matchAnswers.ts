import { readSubmissionDetail, type SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import { findSubmissions, type ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type Holder, readOtherHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { Database } from '../postgres/database.ts'
import { resourceNames } from '../resources.ts'
import type { Databases } from './databases.ts'
import type { AnsweredLine } from './readAnswersFile.ts'

export interface SettlingLine {
  line: number
  submission: ListedSubmission
  /** Null if it did not arrive. */
  transaction: TransactionRef | null
  /** A person has said otherwise before. */
  isCorrection: boolean
}

export interface SkippedLine {
  line: number
  submission: ListedSubmission
  reason: string
}

/** The lines to settle and to skip, or all contradictions. */
export type Matched =
  | { kind: 'value'; settling: SettlingLine[]; skipped: SkippedLine[] }
  | { kind: 'invalid'; problems: string[] }

/** Compares each line with the ledger and the other lines. @param onLine called with each line's index */
export async function matchAnswers(
  databases: Databases,
  lines: readonly AnsweredLine[],
  onLine: (index: number) => void,
): Promise<Matched> {
  const settling: SettlingLine[] = []
  const skipped: SkippedLine[] = []
  const problems: string[] = []
  const lineOf = new Map<string, number>()
  /** Returns whether it is the first line that says this. */
  const isFirst = (line: number, what: string, name: string) => {
    const before = lineOf.get(what)
    if (before === undefined) lineOf.set(what, line)
    else problems.push(`line ${line}: ${name} is on line ${before} already`)
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
      problems.push(`line ${line}: ${typeof submission === 'string' ? submission : 'its record was just pruned'}`)
      continue
    }
    if (!isFirst(line, submission.id, `outbox:${submission.outboxId}`)) continue
    const transaction = arrivedAs === null ? null : transactionOf(detail, arrivedAs)
    if (transaction !== null && !isFirst(line, `${transaction.resource} ${arrivedAs}`, transaction.transactionId))
      continue
    const other = transaction === null ? null : await readOtherHolder(databases.ledger, transaction, submission.id)
    const why = whySkipped(detail, answered)
    const contradiction = contradictionOf(detail, answered)
    if (other !== null) problems.push(`line ${line}: ${takenMessage(other)}`)
    else if (why !== null) skipped.push({ line, submission, reason: why })
    else if (contradiction !== null) problems.push(`line ${line}: ${contradiction}`)
    else settling.push({ line, submission, transaction, isCorrection: detail.idByPerson })
  }
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'value', settling, skipped }
}

/** Returns the problem if the line names no submission, or several. */
async function findSubmission(
  ledger: Database,
  { outboxId, submissionId }: AnsweredLine,
): Promise<ListedSubmission | string> {
  const [first, second] =
    submissionId !== null
      ? await findSubmissions(ledger, { kind: 'range', from: submissionId, to: submissionId }, 2)
      : await findSubmissions(ledger, { kind: 'outbox', value: outboxId ?? '' }, 2)
  if (first === undefined) return `there is no submission ${submissionId ?? `outbox:${outboxId}`}`
  if (second !== undefined) return `outbox:${outboxId} fits ${first.id} and ${second.id}: give the submission's id`
  // Sorting only one column of a spreadsheet gives every record the answer of another.
  if (outboxId !== null && first.outboxId !== outboxId)
    return `${first.id} is outbox:${first.outboxId} and not outbox:${outboxId}: have columns been mixed up, or did a spreadsheet change the id?`
  return first
}

export const transactionOf = ({ resource }: SubmissionDetail, transactionId: string): TransactionRef => ({
  resource: resource ?? resourceNames[0],
  transactionId,
})

export const takenMessage = ({ transactionId, outboxId }: Holder) =>
  `${transactionId} is the transaction of outbox:${outboxId}: outboxd show outbox:${outboxId}`

/** A second transaction on the line, other than the one that the ledger has. */
function contradictionOf(detail: SubmissionDetail, { arrivedAs, listedAs }: AnsweredLine): string | null {
  if (listedAs === null || listedAs === detail.transactionId || listedAs === arrivedAs) return null
  const answer = arrivedAs === null ? 'that it did not arrive' : `that it arrived as ${arrivedAs}`
  return `it says two things of outbox:${detail.outboxId}: ${answer}, and ${listedAs} in the column transaction_id`
}

/**
 * Why a record stays although a line answers for it; null if it does not. A file is older than the ledger: later steps
 * are not undone by it, and nothing is sent again on an old answer.
 */
export function whySkipped(detail: SubmissionDetail, { arrivedAs, attempts, listedAs }: AnsweredLine): string | null {
  const { outboxId, state, transactionId, attempt, idByPerson, events } = detail
  if (arrivedAs !== null && transactionId === arrivedAs && (state === 'accepted' || state === 'completed'))
    return `is ${state} as ${arrivedAs} already`
  const why = whyNotSettled(detail)
  if (why !== null) return `is ${state}${why}`
  // An earlier attempt tells nothing of the one in doubt.
  if (attempts !== attempt) return 'was sent again since the file was made: ask again'
  const oneByOne = `outboxd resolve outbox:${outboxId} ${arrivedAs === null ? '--not-arrived' : `--arrived ${arrivedAs}`}`
  if (idByPerson && listedAs !== transactionId)
    return `is ${state} as ${transactionId}, which a person said: ${oneByOne}, if that is wrong`
  return events.some(({ cause }) => cause === `resolved: taken back that it is ${arrivedAs}`)
    ? `is not ${arrivedAs}, a person has said: ${oneByOne}, if it is after all`
    : null
}

/** Why a person cannot settle a submission, to be read after its state; null if it is possible. */
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
