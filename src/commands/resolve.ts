import type { Command } from 'commander'
import { askForTransaction } from '../cli/askForTransaction.ts'
import { isConfirmed } from '../cli/confirm.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { takenMessage, transactionOf } from '../cli/matchAnswers.ts'
import { findAll, referenceHelp } from '../cli/references.ts'
import { transactionIdProblem } from '../cli/transactionIdProblem.ts'
import { whyNotSettled } from '../cli/whyNotSettled.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { readConfig } from '../config.ts'
import type { SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import type { Holder } from '../ledger/transactionIds.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { resolveFile } from './resolveFile.ts'

export interface ResolveOptions {
  file?: string
  dryRun?: boolean
  json?: boolean
  arrived?: string
  notArrived?: boolean
  unchecked?: boolean
  newKey?: boolean
  takeBack?: boolean
  yes?: boolean
}

export function describeResolve(command: Command): Command {
  return command
    .description('settle an uncertain record: say whether it arrived at the service')
    .argument('[id]', referenceHelp)
    .option('--file <file.csv>', 'settle many: a line each, with the outbox id and the transaction id or not-arrived')
    .option('--arrived <transaction-id>', 'it arrived, as this transaction (or order): we follow it to its end')
    .option('--not-arrived', 'it never arrived: we send it again under the same idempotency key')
    .option('--take-back', 'the id that a person gave is wrong, and no other is known yet: it is uncertain again')
    .option('--unchecked', 'with --arrived or --file: do not ask the service first')
    .option('--new-key', 'with --not-arrived or --file: under a new idempotency key')
    .option('--dry-run', 'with --file: show what would be settled; change nothing, and do not ask the service')
    .option('--yes', 'do not ask whether it is meant')
    .option('--json', 'with --file: what was settled and what was not, as JSON')
    .addHelpText(
      'after',
      `
Exactly one of --arrived, --not-arrived and --take-back, and only when you know: if it did arrive and you say that it did not, it is
sent twice, unless the service recognises the idempotency key. Those that its key held back go on.

--arrived refuses an id that the ledger has for another record, and asks the service once (two requests of the budget):
what it does not know is refused. Also settles failed and rejected records that may have arrived (outboxd list notes
them), and corrects the id of an accepted one that the service never gave a usable answer for.

An id that a person gave can be corrected whatever has become of the record by it, completed and failed too: with
--arrived OTHER, or --take-back where the other is not known or belongs to a record whose id is wrong as well.

--file takes what outboxd list --state uncertain --csv has made and somebody has filled in (column arrived_as), or two columns
without a header: the outbox id or the submission's id; the transaction's id or not-arrived. Lines without an answer are left
alone. Nothing is written while a line is wrong. Each line is checked as above; a line whose id the service does not know is
left alone. The same file may be given again: what is settled already stays as it is.

Examples:
  outboxd list --state uncertain --csv > ask.csv    then, when it is filled in:
  outboxd resolve --file ask.csv --dry-run
  outboxd resolve outbox:4711 --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd resolve outbox:4711 --not-arrived`,
    )
}

/**
 * Settles one submission, or those of a file. @returns 1 where that is not possible, 3 where there is none, 4 where it was
 * not confirmed
 */
export async function resolve(
  context: CommandContext,
  name: string | undefined,
  options: ResolveOptions,
): Promise<number> {
  if (options.file === undefined) return resolveOne(context, name ?? '', options)
  const alone = name === undefined && options.arrived === undefined && !options.notArrived && !options.takeBack
  if (!alone) return usageError(context, ['--file goes without an id, --arrived, --not-arrived and --take-back'])
  return resolveFile(context, options.file, options)
}

async function resolveOne(context: CommandContext, name: string, options: ResolveOptions): Promise<number> {
  const transactionId = options.arrived?.trim()
  const problems = name === '' ? ['give the id of a submission, or --file'] : []
  if (options.dryRun || options.json) problems.push('--dry-run and --json belong to --file')
  problems.push(...resolveProblems(transactionId, options))
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
    if (whyNotAllowed !== null) {
      context.stderr.write(`outboxd: ${name} is ${detail.state}${whyNotAllowed}\n`)
      return exit.failed
    }
    const settling: Settling = { context, store, submission, detail, options }
    if (!(await isCorrectionMeant(settling))) return exit.unconfirmed
    if (options.takeBack) return sayTakenBack(settling)
    return transactionId === undefined ? sayNotArrived(settling) : sayArrived(settling, transactionId)
  })
}

interface Settling {
  context: CommandContext
  store: OperatorStore
  submission: ListedSubmission
  detail: SubmissionDetail
  options: ResolveOptions
}

function resolveProblems(transactionId: string | undefined, options: ResolveOptions): string[] {
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

/** What has ended by a person's word is not undone in passing. */
async function isCorrectionMeant({ context, submission, detail, options }: Settling): Promise<boolean> {
  if (detail.state !== 'completed' && !(detail.state === 'failed' && detail.idByPerson)) return true
  const name = `outbox:${submission.outboxId}`
  const question = `${name} is ${detail.state} as ${detail.transactionId}, which a person said. Is that wrong?`
  return options.yes || isConfirmed(context, question)
}

async function sayTakenBack({ context, store, submission, detail }: Settling) {
  const name = `outbox:${submission.outboxId}`
  if (!(await store.takeBack(submission))) return sayChanged(context, name)
  context.stderr.write(
    `${name} is uncertain again, and ${detail.transactionId} free for the record that it belongs to.\n`,
  )
  return exit.done
}

async function sayArrived({ context, store, submission, detail, options }: Settling, transactionId: string) {
  const { stderr } = context
  const transaction = transactionOf(detail, transactionId)
  const other = await store.readOtherHolder(submission, transaction)
  if (other !== null) return sayTaken(context, other)
  if (!options.unchecked) {
    const { kind, message } = await askForTransaction(context, readConfig(context.env), transaction)
    stderr.write(`${kind === 'known' ? `${message}.` : `outboxd: ${message}\nNothing was changed. ${hints[kind]}`}\n`)
    if (kind !== 'known') return exit.failed
  } else if (!options.yes && !(await isConfirmed(context, uncheckedQuestion(submission, transactionId))))
    return exit.unconfirmed
  const settled = await store.resolveArrived(submission, transaction)
  if (settled.kind === 'taken') return sayTaken(context, settled.by)
  const name = `outbox:${submission.outboxId}`
  if (settled.kind === 'changed') return sayChanged(context, name)
  stderr.write(
    settled.tracked
      ? `${name} is accepted as ${transactionId}, and we ask for it at once.\n`
      : `${name} is completed as ${transactionId}: its mapping says that it is not tracked.\n`,
  )
  return exit.done
}

function sayTaken({ stderr }: CommandContext, holder: Holder): number {
  stderr.write(`outboxd: ${takenMessage(holder)}. One transaction is one record's; nothing was changed.\n`)
  if (holder.idByPerson)
    stderr.write(
      `A person said so. If that is wrong, correct it first: outboxd resolve outbox:${holder.outboxId} --arrived ITS_ID, or --take-back where that is not known.\n`,
    )
  return exit.failed
}

const uncheckedQuestion = ({ outboxId }: ListedSubmission, transactionId: string) =>
  `Follow outbox:${outboxId} as ${transactionId}, without asking the service?`

const hints = {
  denied: 'Look the id up once more; if you are sure, --unchecked believes you.',
  silent: 'Try again when the service answers (outboxd check); if you are sure of the id, --unchecked believes you.',
}

async function sayNotArrived({ context, store, submission, detail, options }: Settling) {
  const name = `outbox:${submission.outboxId}`
  const settled = await store.resolveNotArrived(submission, options.newKey ?? false)
  if (settled === null) return sayChanged(context, name)
  const key = settled.keptKey ? 'the same idempotency key' : 'a new idempotency key'
  context.stderr.write(`${name} is queued again, under ${key}.\n`)
  if (settled.keptKey && detail.code === 'E002')
    context.stderr.write(
      'The service has said that it has this key (E002): if it says so again the record is uncertain once more, and\n' +
        'only --new-key sends it as another. Be sure, then, that it is not there.\n',
    )
  return exit.done
}

function sayChanged({ stderr }: CommandContext, name: string): number {
  stderr.write(`outboxd: ${name} changed meanwhile and was left alone: outboxd show ${name}\n`)
  return exit.failed
}
