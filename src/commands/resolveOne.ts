import { askForTransaction } from '../cli/askForTransaction.ts'
import { isConfirmed, isNotRefused } from '../cli/confirm.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { takenMessage, transactionOf } from '../cli/matchAnswers.ts'
import { printJson } from '../cli/printJson.ts'
import { findAll } from '../cli/references.ts'
import { escapeLines } from '../cli/table.ts'
import { transactionIdProblem } from '../cli/transactionIdProblem.ts'
import { whyNotSettled } from '../cli/whyNotSettled.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { readConfig } from '../config.ts'
import type { SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import type { Holder, TransactionRef } from '../ledger/transactionIds.ts'
import type { State } from '../model.ts'
import type { OperatorStore } from '../store/operatorStore.ts'

export interface ResolveOneOptions {
  arrived?: string
  notArrived?: boolean
  takeBack?: boolean
  unchecked?: boolean
  newKey?: boolean
  dryRun?: boolean
  yes?: boolean
  json?: boolean
}

/** What came of it, or would come of it. */
type Outcome =
  | { kind: 'settled'; state: State; arrivedAs: string | null; message: string }
  | { kind: 'left'; reason: string }
  | { kind: 'unconfirmed' }

interface Settling {
  context: CommandContext
  store: OperatorStore
  /** As a person calls it. */
  name: string
  submission: ListedSubmission
  detail: SubmissionDetail
  options: ResolveOneOptions
}

/**
 * Settles one submission.
 *
 * @param name how a person names it
 * @returns 1 where that is not possible, 3 where there is none, 4 where it was not confirmed
 */
export async function resolveOne(context: CommandContext, name: string, options: ResolveOneOptions): Promise<number> {
  const transactionId = options.arrived?.trim()
  const problems = name === '' ? ['give the id of a submission, or --file'] : []
  problems.push(...answerProblems(transactionId, options))
  if (problems.length > 0) return usageError(context, problems)
  return withOperatorStore(context, async (store) => {
    const found = await findAll(store, [name])
    if (found.kind === 'invalid') return usageError(context, found.problems)
    const submission = found.kind === 'found' ? found.submissions[0] : undefined
    const detail = submission === undefined ? null : await store.readSubmissionDetail(submission.id)
    if (submission === undefined || detail === null) {
      context.stderr.write(`outboxd: there is no submission ${name}\n`)
      return exit.nothing
    }
    const whyNotAllowed = options.takeBack ? whyNotTakenBack(detail) : whyNotSettled(detail)
    const settling: Settling = { context, store, name: `outbox:${submission.outboxId}`, submission, detail, options }
    if (whyNotAllowed !== null) return conclude(settling, left(`${name} is ${detail.state}${whyNotAllowed}`))
    return conclude(settling, await settle(settling, transactionId))
  })
}

function answerProblems(transactionId: string | undefined, options: ResolveOneOptions): string[] {
  const { notArrived, unchecked, newKey, takeBack } = options
  if ([transactionId !== undefined, notArrived, takeBack].filter(Boolean).length !== 1)
    return ['give exactly one of --arrived TRANSACTION_ID, --not-arrived and --take-back']
  if (takeBack) return unchecked || newKey ? ['--take-back goes alone'] : []
  if (notArrived) return unchecked ? ['--unchecked belongs to --arrived'] : []
  const problems = newKey ? ['--new-key belongs to --not-arrived'] : []
  if (!transactionId) return [...problems, '--arrived needs the transaction id that the service gave']
  if (transactionId.startsWith('--'))
    return [...problems, `--arrived needs the transaction id that the service gave; ${transactionId} is an option`]
  const problem = transactionIdProblem(transactionId)
  return problem === null ? problems : [...problems, `--arrived: ${problem}`]
}

const whyNotTakenBack = ({ idByPerson }: SubmissionDetail) =>
  idByPerson ? null : ', and no person gave its transaction id: there is nothing to take back'

async function settle(settling: Settling, transactionId: string | undefined): Promise<Outcome> {
  const { store, submission, detail, options } = settling
  const transaction = transactionId === undefined ? null : transactionOf(detail, transactionId)
  const other = transaction === null ? null : await store.readOtherHolder(submission, transaction)
  if (other !== null) return taken(other)
  if (options.dryRun) return preview(settling, transaction)
  if (!(await isMeant(settling))) return { kind: 'unconfirmed' }
  if (transaction !== null) return settleArrived(settling, transaction)
  return options.takeBack ? takeBack(settling) : settleNotArrived(settling)
}

/** What each answer would come to. */
function preview({ name, detail, options }: Settling, transaction: TransactionRef | null): Outcome {
  const now = `${name} is ${detail.state}${detail.idByPerson ? ` as ${detail.transactionId}, which a person said` : ''}.`
  if (options.takeBack)
    return settled('uncertain', null, `${now} This would make it uncertain again, and its id free for another record.`)
  if (transaction === null) {
    const key = options.newKey
      ? 'a new idempotency key'
      : 'its idempotency key, or a new one where the service has processed that'
    return settled('queued', null, `${now} This would send it again, under ${key}.`)
  }
  const { transactionId } = transaction
  const asked = options.unchecked ? 'without asking the service' : 'if the service, which is asked first, knows that id'
  return detail.tracked
    ? settled('accepted', transactionId, `${now} This would follow it as ${transactionId}, ${asked}.`)
    : settled('completed', transactionId, `${now} This would complete it as ${transactionId}, ${asked}.`)
}

/**
 * What has ended by a person's word is not undone in passing. Nor is anything sent again without a question to whoever can be
 * asked; a script that names one record is believed, as with `replay ID`.
 */
async function isMeant({ context, name, detail, options }: Settling): Promise<boolean> {
  if (options.yes) return true
  if (detail.state === 'completed' || (detail.state === 'failed' && detail.idByPerson)) {
    const question = `${name} is ${detail.state} as ${detail.transactionId}, which a person said. Is that wrong?`
    return isConfirmed(context, question)
  }
  const question = `Send ${name} again? If it did arrive, the service may then have it twice.`
  return !options.notArrived || isNotRefused(context, question)
}

async function takeBack({ store, name, submission, detail }: Settling): Promise<Outcome> {
  if (!(await store.takeBack(submission))) return changed(name)
  const free = `${detail.transactionId} free for the record that it belongs to`
  return settled('uncertain', null, `${name} is uncertain again, and ${free}.`)
}

async function settleArrived(settling: Settling, transaction: TransactionRef): Promise<Outcome> {
  const { context, store, name, submission, options } = settling
  const { transactionId } = transaction
  if (!options.unchecked) {
    const { kind, message } = await askForTransaction(context, readConfig(context.env), transaction)
    if (kind !== 'known') return left(`${message}\nNothing was changed. ${hints[kind]}`)
    context.stderr.write(`${escapeLines(message)}.\n`)
  } else if (
    !options.yes &&
    !(await isConfirmed(context, `Follow ${name} as ${transactionId}, without asking the service?`))
  )
    return { kind: 'unconfirmed' }
  const written = await store.resolveArrived(submission, transaction)
  if (written.kind === 'taken') return taken(written.by)
  if (written.kind === 'changed') return changed(name)
  return written.tracked
    ? settled('accepted', transactionId, `${name} is accepted as ${transactionId}, and we ask for it at once.`)
    : settled(
        'completed',
        transactionId,
        `${name} is completed as ${transactionId}: its mapping says that it is not tracked.`,
      )
}

const hints = {
  denied: 'Look the id up once more; if you are sure, --unchecked believes you.',
  silent: 'Try again when the service answers (outboxd check); if you are sure of the id, --unchecked believes you.',
}

async function settleNotArrived({ store, name, submission, detail, options }: Settling): Promise<Outcome> {
  const written = await store.resolveNotArrived(submission, options.newKey ?? false)
  if (written === null) return changed(name)
  const key = written.keptKey ? 'the same idempotency key' : 'a new idempotency key'
  const hint = written.keptKey && detail.code === 'E002' ? `\n${sameKeyHint}` : ''
  return settled('queued', null, `${name} is queued again, under ${key}.${hint}`)
}

const sameKeyHint =
  'The service has said that it has this key (E002): if it says so again the record is uncertain once more, and\n' +
  'only --new-key sends it as another. Be sure, then, that it is not there.'

const settled = (state: State, arrivedAs: string | null, message: string): Outcome => ({
  kind: 'settled',
  ...{ state, arrivedAs, message },
})

const left = (reason: string): Outcome => ({ kind: 'left', reason })

function taken(holder: Holder): Outcome {
  const told = `${takenMessage(holder)}. One transaction is one record's; nothing was changed.`
  if (!holder.idByPerson) return left(told)
  const correct = `outboxd resolve outbox:${holder.outboxId} --arrived ITS_ID, or --take-back where that is not known`
  return left(`${told}\nA person said so. If that is wrong, correct it first: ${correct}.`)
}

const changed = (name: string) => left(`${name} changed meanwhile and was left alone: outboxd show ${name}`)

/** Says what came of it, with the keys that --json has for a file of answers. @returns the exit code */
function conclude({ context, submission: { id, outboxId }, options }: Settling, outcome: Outcome): number {
  if (outcome.kind === 'unconfirmed') return exit.unconfirmed
  const isSettled = outcome.kind === 'settled'
  if (options.json)
    printJson(context, {
      dryRun: options.dryRun ?? false,
      settled: isSettled ? [{ id, outboxId, arrivedAs: outcome.arrivedAs, state: outcome.state }] : [],
      leftAlone: isSettled ? [] : [{ id, outboxId, reason: outcome.reason }],
    })
  const words = escapeLines(isSettled ? outcome.message : `outboxd: ${outcome.reason}`)
  const isData = isSettled && options.dryRun && !options.json
  if (isData) context.stdout.write(`${words}\n`)
  else context.stderr.write(`${words}\n`)
  return isSettled ? exit.done : exit.failed
}
