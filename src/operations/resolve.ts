import { type NewerVersion, readNewerVersions } from '../ledger/documents.ts'
import { assertNoDataLost } from '../ledger/history/history.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { readSubmissionDetail, type SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import {
  readArrivalsPossibleUntil,
  resolveAsArrived,
  resolveAsNotArrived,
  withdrawGivenTransactionId,
} from '../ledger/operator/resolveSubmission.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { readOtherTransactionHolder, type TransactionHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { State } from '../model/submission.ts'
import { quoteForShell } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { resourceNames } from '../resources.ts'
import { formatInstant } from '../time.ts'
import type { TransactionAnswer } from './askForTransaction.ts'
import {
  type BulkChangeRules,
  type BulkChangeRun,
  type BulkOutcome,
  carryOutInBatches,
  listSkippedAsChanged,
} from './bulkChange.ts'
import type { Databases } from './databases.ts'
import { findEachSubmissionByReference } from './references.ts'
import { commandToSendNewest, olderVersionClause } from './submissionFacts.ts'

export interface ResolveAnswer {
  arrived?: string | undefined
  notArrived: boolean
  /** The id that an operator gave is wrong, and the right id is unknown. */
  takeBack: boolean
  unchecked: boolean
  newKey: boolean
}

export type ResolveOutcome =
  | { kind: 'settled'; state: State; arrivedAs: string | null; message: string }
  | { kind: 'left'; reason: string }

export interface RecordToSettle {
  submission: Pick<ListedSubmission, 'id' | 'outboxId' | 'revision' | 'key'>
  detail: SubmissionDetail
}

export interface ConfirmationQuestion {
  text: string
  /** True if, in a script, the command itself is the confirmation. */
  isImplied: boolean
}

export function findResolveOptionProblems({
  arrived,
  notArrived,
  takeBack,
  unchecked,
  newKey,
}: ResolveAnswer): string[] {
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
  const problem = findTransactionIdProblem(arrived)
  return problem === null ? problems : [...problems, `--arrived: ${problem}`]
}

type ResolutionPreview =
  | { kind: 'invalid'; problems: string[] }
  | { kind: 'missing' }
  /** `outcome`: the result of the answer, or why the answer is refused. */
  | { kind: 'found'; settling: RecordToSettle; outcome: ResolveOutcome; question: ConfirmationQuestion | null }

export async function previewResolution(
  databases: Databases,
  name: string,
  answer: ResolveAnswer,
): Promise<ResolutionPreview> {
  await assertNoDataLost(databases.ledger)
  const found = await findEachSubmissionByReference(databases.ledger, [name])
  if (found.kind === 'invalid') return found
  const submission = found.kind === 'found' ? found.submissions[0] : undefined
  if (submission === undefined) return { kind: 'missing' }
  const detail = await readSubmissionDetail(databases.ledger, submission.id)
  if (detail === null) return { kind: 'missing' }
  const settling = { submission, detail }
  const why = await whyNotResolved(databases.ledger, detail, answer)
  const outcome = why === null ? predictResolveOutcome(settling, answer) : left(why)
  return { kind: 'found', settling, outcome, question: questionBefore(settling, answer) }
}

/** Null if the answer can be given. */
export async function whyNotResolved(
  ledger: Database,
  detail: SubmissionDetail,
  answer: ResolveAnswer,
): Promise<string | null> {
  const whyNotAllowed = answer.takeBack ? whyNotTakenBack(detail) : whyCannotBeSettledSuffix(detail)
  if (whyNotAllowed !== null) return `${nameOf(detail)} is ${detail.state}${whyNotAllowed}`
  if (answer.notArrived) return whyNotSentAgain(ledger, detail)
  const transaction = transactionNamedInAnswer(detail, answer)
  const other = transaction === null ? null : await readOtherTransactionHolder(ledger, transaction, detail.id)
  return other === null ? null : takenMessage(other)
}

async function whyNotSentAgain(ledger: Database, detail: SubmissionDetail): Promise<string | null> {
  const untilMs = (await readArrivalsPossibleUntil(ledger, [detail.id])).get(detail.id)
  if (untilMs !== undefined) return `${nameOf(detail)} ${mayStillArriveClause(untilMs)}`
  const newer = (await readNewerVersions(ledger, [detail.id])).get(detail.id)
  return newer === undefined
    ? null
    : `${nameOf(detail)} ${olderVersionClause(newer)}. ${insteadOfSending(detail, newer)}`
}

const mayStillArriveClause = (untilMs: number) =>
  `may still arrive until ${formatInstant(untilMs)}, because its last request may be on the way. Look at the service again after that`

function insteadOfSending({ state }: Pick<SubmissionDetail, 'state'>, newer: NewerVersion): string {
  if (state === 'sending') return 'Wait until the daemon no longer asks the service for it'
  const first = state === 'completed' ? 'Give --take-back, then discard it' : 'Discard it instead'
  const command = commandToSendNewest(newer)
  return command === null ? first : `${first}, then \`${command}\` sends the newest version`
}

const whyNotTakenBack = ({ idByPerson }: SubmissionDetail) =>
  idByPerson ? null : ', and no operator gave its transaction id: there is nothing to take back'

export const transactionNamedInAnswer = (
  { resource }: SubmissionDetail,
  { arrived }: ResolveAnswer,
): TransactionRef | null =>
  arrived === undefined ? null : { resource: resource ?? resourceNames[0], transactionId: arrived }

export function predictResolveOutcome({ detail }: RecordToSettle, answer: ResolveAnswer): ResolveOutcome {
  const now = `${nameOf(detail)} is ${detail.state}${detail.idByPerson ? `; its transaction id ${detail.transactionId} was given by an operator` : ''}.`
  const would = (state: State, message: string) =>
    settled(state, answer.arrived ?? null, `${now} This would ${message}.`)
  if (answer.takeBack)
    return would('uncertain', 'make it uncertain again, and free its transaction id for another record')
  if (answer.arrived === undefined) {
    const kept = hasKeyOfRecovery(detail)
      ? newKeyAfterLoss
      : 'its idempotency key, or a new one if the service has processed that key'
    return would('queued', `send it again, under ${answer.newKey ? 'a new idempotency key' : kept}`)
  }
  const asked = answer.unchecked ? 'without asking the service' : 'if the service knows that id'
  return would(
    detail.tracked ? 'accepted' : 'completed',
    `${detail.tracked ? 'track' : 'complete'} it as ${answer.arrived}, ${asked}`,
  )
}

function questionBefore(
  { detail }: RecordToSettle,
  { arrived, notArrived, unchecked }: ResolveAnswer,
): ConfirmationQuestion | null {
  const name = nameOf(detail)
  const { state, idByPerson, transactionId, tracked } = detail
  if (state === 'completed' || (state === 'failed' && idByPerson)) {
    const drop = notArrived ? 'Drop this id and send the record again' : 'Drop this id'
    const correction = arrived === undefined ? drop : `Replace this id with ${arrived}`
    const ofService =
      state === 'completed' && tracked ? ` The service itself says that ${transactionId} is completed.` : ''
    return ask(`${name} is ${state} as ${transactionId}, an id that an operator gave.${ofService} ${correction}?`)
  }
  if (notArrived) {
    const risk = hasKeyOfRecovery(detail) ? 'will have it twice, because its key is new' : 'may have it twice'
    return ask(`Send ${name} again? If it did arrive, the service ${risk}.`, true)
  }
  const isBelieved = arrived !== undefined && unchecked
  return isBelieved ? ask(`Track ${name} as ${arrived}, without asking the service?`) : null
}

const ask = (text: string, isImplied = false): ConfirmationQuestion => ({ text, isImplied })

export const notArrivedRules = (newKey: boolean): BulkChangeRules => ({
  verb: 'resolve',
  did: 'resolved',
  allowedStates: ['uncertain'],
  defaultStates: ['uncertain'],
  whyNotAllowed: () => 'it is not uncertain. Name it by its id',
  whySpared: null,
  riskOf: () =>
    `They are sent again. What did arrive, the service then has twice, ${newKey ? 'because the idempotency keys are new' : 'unless it recognises the idempotency keys'}.\n`,
  asksAlways: () => true,
})

/** Few, so that the locks are held for a moment. */
const batchSize = 100

export function resolveAllAsNotArrived(
  { ledger, operator }: { ledger: Database; operator: Operator | null },
  submissions: readonly ListedSubmission[],
  newKey: boolean,
  run: BulkChangeRun,
): Promise<BulkOutcome> {
  return carryOutInBatches(submissions, batchSize, run, async (batch) => {
    const ids = batch.map(({ id }) => id)
    const untilMs = await readArrivalsPossibleUntil(ledger, ids)
    const newer = await readNewerVersions(ledger, ids)
    const refused = batch.flatMap((submission) => {
      const ms = untilMs.get(submission.id)
      if (ms !== undefined) return [{ submission, reason: mayStillArriveClause(ms) }]
      const by = newer.get(submission.id)
      if (by === undefined) return []
      return [{ submission, reason: `${olderVersionClause(by)}. ${insteadOfSending(submission, by)}` }]
    })
    const over = batch.filter(({ id }) => !untilMs.has(id) && !newer.has(id))
    const settled = operator === null ? over : await resolveAsNotArrived(operator, over, newKey)
    const done = new Set(settled.map(({ id }) => id))
    return { done: [...done], skipped: [...refused, ...listSkippedAsChanged(over, done)] }
  })
}

interface ResolveParts {
  operator: Operator
  askService(transaction: TransactionRef): Promise<TransactionAnswer>
  /** Called with the service's answer if the service knows the transaction. */
  onServiceAnswer(message: string): void
}

/** Writes only if the record is as the operator saw it. */
export async function resolveSubmission(
  parts: ResolveParts,
  settling: RecordToSettle,
  answer: ResolveAnswer,
): Promise<ResolveOutcome> {
  const transaction = transactionNamedInAnswer(settling.detail, answer)
  if (transaction !== null) return settleArrived(parts, settling, { transaction, unchecked: answer.unchecked })
  return answer.takeBack ? takeBack(parts, settling) : settleNotArrived(parts, settling, answer.newKey)
}

async function takeBack({ operator }: ResolveParts, { submission, detail }: RecordToSettle): Promise<ResolveOutcome> {
  const name = nameOf(submission)
  if (!(await withdrawGivenTransactionId(operator, submission))) return changed(name)
  const free = `${detail.transactionId} can be given to another record`
  return settled('uncertain', null, `${name} is uncertain again, and ${free}.`)
}

async function settleArrived(
  { operator, askService, onServiceAnswer }: ResolveParts,
  { submission }: RecordToSettle,
  { transaction, unchecked }: { transaction: TransactionRef; unchecked: boolean },
): Promise<ResolveOutcome> {
  const name = nameOf(submission)
  const { transactionId } = transaction
  if (!unchecked) {
    const { kind, message } = await askService(transaction)
    if (kind !== 'known') return left(`${message.replace(/\.$/, '')}. ${kind === 'unasked' ? notAsked : notConfirmed}`)
    onServiceAnswer(message)
  }
  const written = await resolveAsArrived(operator, submission, transaction)
  if (written.kind === 'taken') return left(takenMessage(written.by))
  if (written.kind === 'changed') return changed(name)
  return written.tracked
    ? settled('accepted', transactionId, `${name} is accepted as ${transactionId}. The daemon asks for it at once.`)
    : settled('completed', transactionId, `${name} is completed as ${transactionId}: its mapping says track: false.`)
}

const notAsked = 'The service was not asked, so nothing was changed. Give the same command then.'

const notConfirmed =
  'Nothing was changed. Check the id, and that the service answers (`outboxd check`). If you are sure of the id, add --unchecked.'

async function settleNotArrived(
  { operator }: ResolveParts,
  { submission, detail }: RecordToSettle,
  newKey: boolean,
): Promise<ResolveOutcome> {
  const name = nameOf(submission)
  const [written] = await resolveAsNotArrived(operator, [submission], newKey)
  if (written === undefined) {
    const why = await whyNotSentAgain(operator.ledger, detail)
    return why === null ? changed(name) : left(why)
  }
  const ifKept = hasKeyOfRecovery(detail) ? newKeyAfterLoss : keptKey
  const key = written.keptKey ? ifKept : 'a new idempotency key'
  return settled('queued', null, `${name} is queued again, under ${key}.`)
}

/** True if nothing was sent under the key that the record got after the ledger lost data. */
const hasKeyOfRecovery = ({ events: [first], attempt }: SubmissionDetail) =>
  attempt === 0 && (first?.cause === 'recovered' || (first?.cause === 'captured' && first.to === 'uncertain'))

const newKeyAfterLoss =
  'an idempotency key that the service has never seen, because the ledger lost data. The service cannot recognise an earlier attempt'

const keptKey =
  'the same idempotency key. If the service does not have the record, but answers that it has this key (E002) or repeats a failure (E003), repeat the command and add --new-key'

const nameOf = ({ outboxId }: Pick<ListedSubmission, 'outboxId'>) => `outbox:${outboxId}`

const settled = (state: State, arrivedAs: string | null, message: string): ResolveOutcome => ({
  kind: 'settled',
  ...{ state, arrivedAs, message },
})

const left = (reason: string): ResolveOutcome => ({ kind: 'left', reason })

export const transactionHolderMessage = ({ transactionId, outboxId }: TransactionHolder) =>
  `${transactionId} is the transaction of outbox:${outboxId} (\`outboxd show ${quoteForShell(`outbox:${outboxId}`)}\`)`

const takenMessage = (holder: TransactionHolder) =>
  `${transactionHolderMessage(holder)}. A transaction belongs to one record, so nothing was changed. If an operator gave that record the id by mistake, correct it first: \`outboxd resolve ${quoteForShell(`outbox:${holder.outboxId}`)} --arrived ITS_ID\`, or --take-back if you do not know its id.`

const changed = (name: string) =>
  left(`${name} has changed, so nothing was done. See \`outboxd show ${quoteForShell(name)}\``)

export function whyCannotBeSettledSuffix({
  state,
  probing,
  mayHaveArrived,
  changedAfterSent,
  answered,
  idByPerson,
  body,
}: SubmissionDetail): string | null {
  if (changedAfterSent)
    return ', not uncertain: it is a change of a document that was sent before, and was not sent itself. `outboxd show` says what can be done'
  if (state === 'rejected' && mayHaveArrived && body === null)
    return ' and cannot be mapped. If it has arrived, discard it. If not, fix the mapping and replay it'
  if (idByPerson && (state === 'completed' || state === 'failed')) return null
  if (probing || state === 'uncertain' || (mayHaveArrived && (state === 'failed' || state === 'rejected'))) return null
  if (state === 'accepted')
    return idByPerson || !answered
      ? null
      : ', not uncertain: the service gave its id and works on it. `outboxd discard` gives it up'
  const again = state === 'failed' || state === 'rejected' ? '. `outboxd replay` sends it again' : ''
  return `, not uncertain: there is nothing to settle${again}`
}

/** The same as `textCharsMax.id`. */
const transactionIdMaxChars = 255

/** Placeholders of scripts and spreadsheets, for instance. */
const noIds: ReadonlySet<string> = new Set(
  [
    'null undefined none nil nan n/a na unknown true false yes no y n ja nein ok okay x done',
    'arrived not-arrived not_arrived notarrived received found missing lost',
    'accepted completed failed rejected pending uncertain',
  ].flatMap((words) => words.split(' ')),
)

export function findTransactionIdProblem(id: string): string | null {
  if (id.length > transactionIdMaxChars || /[\s\p{Cc}]/u.test(id) || !id.isWellFormed())
    return `a transaction id has no blanks and at most ${transactionIdMaxChars} characters`
  if (noIds.has(id.toLowerCase()) || !/[\p{L}\p{N}]/u.test(id))
    return `${id} is not a transaction id: give the one from the service`
  return null
}
