import type { Operator } from '../ledger/operator/operator.ts'
import { readSubmissionDetail, type SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import {
  resolveAsArrived,
  resolveAsNotArrived,
  takeBackGivenTransactionId,
} from '../ledger/operator/resolveSubmission.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type Holder, readOtherTransactionHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { State } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import type { Testimony } from './askForTransaction.ts'
import type { Databases } from './databases.ts'
import { toTransactionRef, transactionHolderMessage, whyNotSettled } from './matchAnswers.ts'
import { transactionIdProblem } from './readAnswersFile.ts'
import { findEachSubmissionByName } from './references.ts'

export interface ResolveAnswer {
  arrived?: string | undefined
  notArrived: boolean
  /** The id that an operator gave is wrong, and the right one is unknown. */
  takeBack: boolean
  unchecked: boolean
  newKey: boolean
}

export type ResolveOutcome =
  | { kind: 'settled'; state: State; arrivedAs: string | null; message: string }
  | { kind: 'left'; reason: string }

export interface Settling {
  submission: Pick<ListedSubmission, 'id' | 'outboxId' | 'revision' | 'key'>
  detail: SubmissionDetail
}

export interface Question {
  text: string
  /** In a script, the command itself is the confirmation. */
  isImplied: boolean
}

export function resolveOptionProblems({ arrived, notArrived, takeBack, unchecked, newKey }: ResolveAnswer): string[] {
  if ([arrived !== undefined, notArrived, takeBack].filter(Boolean).length !== 1)
    return [
      'give exactly one of --arrived TRANSACTION_ID, --not-arrived and --take-back, such as: outboxd resolve outbox:4711 --not-arrived',
    ]
  if (takeBack) return unchecked || newKey ? ['--take-back cannot be combined with --unchecked or --new-key'] : []
  if (notArrived) return unchecked ? ['--unchecked needs --arrived'] : []
  const problems = newKey ? ['--new-key needs --not-arrived'] : []
  if (!arrived)
    return [
      ...problems,
      '--arrived needs the transaction id that the service gave, such as --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f',
    ]
  if (arrived.startsWith('--'))
    return [...problems, `--arrived needs the transaction id that the service gave, but ${arrived} is an option`]
  const problem = transactionIdProblem(arrived)
  return problem === null ? problems : [...problems, `--arrived: ${problem}`]
}

/** The answer about a submission, compared with the ledger. */
export type ResolutionPreview =
  | { kind: 'invalid'; problems: string[] }
  | { kind: 'missing' }
  /** `outcome`: the result of the answer, or why it is refused. */
  | { kind: 'found'; settling: Settling; outcome: ResolveOutcome; questions: Question[] }

export async function previewResolution(
  databases: Databases,
  name: string,
  answer: ResolveAnswer,
): Promise<ResolutionPreview> {
  const found = await findEachSubmissionByName(databases.ledger, [name])
  if (found.kind === 'invalid') return found
  const submission = found.kind === 'found' ? found.submissions[0] : undefined
  if (submission === undefined) return { kind: 'missing' }
  const detail = await readSubmissionDetail(databases.ledger, submission.id, databases.config.keyOnFailure)
  if (detail === null) return { kind: 'missing' }
  const settling = { submission, detail }
  const outcome = (await whyNotResolved(databases.ledger, settling, answer)) ?? previewResolve(settling, answer)
  return { kind: 'found', settling, outcome, questions: questionsBefore(settling, answer) }
}

async function whyNotResolved(
  ledger: Database,
  { submission, detail }: Settling,
  answer: ResolveAnswer,
): Promise<ResolveOutcome | null> {
  const whyNotAllowed = answer.takeBack ? whyNotTakenBack(detail) : whyNotSettled(detail)
  if (whyNotAllowed !== null) return left(`${nameOf(detail)} is ${detail.state}${whyNotAllowed}`)
  const transaction = transactionIn(detail, answer)
  const other = transaction === null ? null : await readOtherTransactionHolder(ledger, transaction, submission.id)
  return other === null ? null : taken(other)
}

const whyNotTakenBack = ({ idByPerson }: SubmissionDetail) =>
  idByPerson ? null : ', and no operator gave its transaction id: there is nothing to take back'

const transactionIn = (detail: SubmissionDetail, { arrived }: ResolveAnswer): TransactionRef | null =>
  arrived === undefined ? null : toTransactionRef(detail, arrived)

function previewResolve({ detail }: Settling, answer: ResolveAnswer): ResolveOutcome {
  const now = `${nameOf(detail)} is ${detail.state}${detail.idByPerson ? `; its transaction id ${detail.transactionId} was given by an operator` : ''}.`
  if (answer.takeBack)
    return settled(
      'uncertain',
      null,
      `${now} This would make it uncertain again, and free its transaction id for another record.`,
    )
  if (answer.arrived === undefined) {
    const key = answer.newKey
      ? 'a new idempotency key'
      : 'its idempotency key, or a new one if the service has processed that'
    return settled('queued', null, `${now} This would send it again, under ${key}.`)
  }
  const asked = answer.unchecked ? 'without asking the service' : 'if the service knows that id'
  return detail.tracked
    ? settled('accepted', answer.arrived, `${now} This would track it as ${answer.arrived}, ${asked}.`)
    : settled('completed', answer.arrived, `${now} This would complete it as ${answer.arrived}, ${asked}.`)
}

function questionsBefore({ detail }: Settling, { arrived, notArrived, unchecked }: ResolveAnswer): Question[] {
  const name = nameOf(detail)
  const hasEnded = detail.state === 'completed' || (detail.state === 'failed' && detail.idByPerson)
  const correction =
    arrived !== undefined
      ? `Replace that id with ${arrived}?`
      : notArrived
        ? 'Drop that id and send the record again?'
        : 'Drop that id and make the record uncertain again?'
  const first = hasEnded
    ? [ask(`${name} is ${detail.state} as ${detail.transactionId}, an id that an operator gave. ${correction}`)]
    : notArrived
      ? [ask(`Send ${name} again? If it did arrive, the service may have it twice.`, true)]
      : []
  const second =
    arrived !== undefined && unchecked ? [ask(`Track ${name} as ${arrived}, without asking the service?`)] : []
  return [...first, ...second]
}

const ask = (text: string, isImplied = false): Question => ({ text, isImplied })

export interface ResolveParts {
  operator: Operator
  askService(transaction: TransactionRef): Promise<Testimony>
  /** Called with the answer of the service if the record can be settled. */
  onTestimony(message: string): void
}

/** Writes the answer if the revision is still the seen one. */
export async function resolveSubmission(
  parts: ResolveParts,
  settling: Settling,
  answer: ResolveAnswer,
): Promise<ResolveOutcome> {
  const transaction = transactionIn(settling.detail, answer)
  if (transaction !== null) return settleArrived(parts, settling, { transaction, unchecked: answer.unchecked })
  return answer.takeBack ? takeBack(parts, settling) : settleNotArrived(parts, settling, answer.newKey)
}

async function takeBack({ operator }: ResolveParts, { submission, detail }: Settling): Promise<ResolveOutcome> {
  const name = nameOf(submission)
  if (!(await takeBackGivenTransactionId(operator, submission))) return changed(name)
  const free = `${detail.transactionId} can be given to another record`
  return settled('uncertain', null, `${name} is uncertain again, and ${free}.`)
}

async function settleArrived(
  { operator, askService, onTestimony }: ResolveParts,
  { submission }: Settling,
  { transaction, unchecked }: { transaction: TransactionRef; unchecked: boolean },
): Promise<ResolveOutcome> {
  const name = nameOf(submission)
  const { transactionId } = transaction
  if (!unchecked) {
    const { kind, message } = await askService(transaction)
    if (kind !== 'known') return left(`${message}\nNothing was changed. ${hints[kind]}`)
    onTestimony(message)
  }
  const written = await resolveAsArrived(operator, submission, transaction)
  if (written.kind === 'taken') return taken(written.by)
  if (written.kind === 'changed') return changed(name)
  return written.tracked
    ? settled('accepted', transactionId, `${name} is accepted as ${transactionId}. The daemon asks for it at once.`)
    : settled('completed', transactionId, `${name} is completed as ${transactionId}: its mapping says track: false.`)
}

const hints = {
  denied: 'Check the id. If you are sure, add --unchecked.',
  silent: 'Try again when the service answers (`outboxd check`). If you are sure of the id, add --unchecked.',
}

async function settleNotArrived(
  { operator }: ResolveParts,
  { submission, detail }: Settling,
  newKey: boolean,
): Promise<ResolveOutcome> {
  const name = nameOf(submission)
  const written = await resolveAsNotArrived(operator, submission, newKey)
  if (written === null) return changed(name)
  const key = written.keptKey ? 'the same idempotency key' : 'a new idempotency key'
  const hint = written.keptKey && detail.code === 'E002' ? `\n${sameKeyHint}` : ''
  return settled('queued', null, `${name} is queued again, under ${key}.${hint}`)
}

const sameKeyHint =
  'The service said that it has this key (E002). If it says so again, the record becomes uncertain again.\n' +
  'If you are sure that the service does not have the record, add --new-key.'

const nameOf = ({ outboxId }: Pick<ListedSubmission, 'outboxId'>) => `outbox:${outboxId}`

const settled = (state: State, arrivedAs: string | null, message: string): ResolveOutcome => ({
  kind: 'settled',
  ...{ state, arrivedAs, message },
})

const left = (reason: string): ResolveOutcome => ({ kind: 'left', reason })

function taken(holder: Holder): ResolveOutcome {
  const told = `${transactionHolderMessage(holder)}. A transaction belongs to one record, so nothing was changed.`
  if (!holder.idByPerson) return left(told)
  const correct = `\`outboxd resolve outbox:${holder.outboxId} --arrived ITS_ID\`, or --take-back if you do not know its id`
  return left(`${told}\nAn operator said so. If that is wrong, correct it first: ${correct}.`)
}

const changed = (name: string) => left(`${name} has changed, so nothing was done. See \`outboxd show ${name}\``)
