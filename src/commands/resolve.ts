import { readConfig } from '../config.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { askForTransaction } from '../operations/askForTransaction.ts'
import { operatorOf } from '../operations/databases.ts'
import { referenceHelp } from '../operations/references.ts'
import {
  type Answer,
  answerProblems,
  considerAnswer,
  type Question,
  type ResolveOutcome,
  resolveSubmission,
  type Settling,
} from '../operations/resolve.ts'
import { escapeLines } from '../plainText.ts'
import { resolveFile } from './resolveFile.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { isConfirmed, isNotRefused } from './terminal/confirm.ts'
import { askingAloud, type CommandContext, exit, printJson, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'settle an uncertain record: say whether it arrived at the service',
  arguments: [['[id]', referenceHelp]],
  options: [
    ['--file <file.csv>', 'settle many: a line each, with the outbox id and the transaction id or not-arrived'],
    ['--arrived <transaction-id>', 'it arrived as this transaction or order, which outboxd tracks to its end'],
    ['--not-arrived', 'it never arrived: send it again under the same idempotency key'],
    ['--take-back', 'the id that an operator gave is wrong: make the record uncertain again'],
    ['--unchecked', 'with --arrived or --file: do not ask the service first'],
    ['--new-key', 'with --not-arrived or --file: under a new idempotency key'],
    asOption,
    reasonOption,
    ['--dry-run', 'show what would be settled; change nothing, and do not ask the service'],
    ['--yes', 'do not ask for confirmation'],
    ['--json', 'as JSON: what was settled and what was not'],
  ],
  help: `Exactly one of --arrived, --not-arrived and --take-back, and only when you know: if it did arrive and you say that it did not, it is
sent twice, unless the service recognises the idempotency key. Those that its key held back go on.

--not-arrived asks on a terminal; a script that names one record need not say --yes. All else that is asked (--unchecked, --file, and
what has ended by a person's word) needs a terminal or --yes, and leaves with 4 without either. --dry-run never asks.

--arrived refuses an id that the ledger has for another record, and asks the service once (two requests of the budget):
what it does not know is refused. Also settles failed and rejected records that may have arrived (outboxd list notes
them), and corrects the id of an accepted one that the service never gave a usable answer for.

An id that a person gave can be corrected whatever has become of the record by it, completed and failed too: with
--arrived OTHER, or --take-back if the other is not known or belongs to a record whose id is wrong as well.

--file takes what outboxd list --state uncertain --csv has made, with the column arrived_as filled in: the transaction's id or
not-arrived. Lines without an answer are left alone. Nothing is written while a line is wrong. Each line is checked as above. The same
file may be given again: what is settled stays as it is, and an answer about an attempt before the last is not believed (column
attempts). What a person has said of a record is corrected only by a file that lists it as it is now.

Examples:
  outboxd list --state uncertain --csv > ask.csv    then, when it is filled in:
  outboxd resolve --file ask.csv --dry-run
  outboxd resolve outbox:4711 --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd resolve outbox:4711 --not-arrived`,
  /** @returns 1 if that is not possible, 3 if there is none, 4 if it was not confirmed */
  async action(context, name, options): Promise<number> {
    if (options.file === undefined) return resolveOne(context, name ?? '', options)
    const alone = name === undefined && options.arrived === undefined && !options.notArrived && !options.takeBack
    if (!alone) return usageError(context, ['--file goes without an id, --arrived, --not-arrived and --take-back'])
    return resolveFile(context, options.file, options)
  },
})

type ResolveOptions = OptionsOf<typeof command>

async function resolveOne(context: CommandContext, name: string, options: ResolveOptions): Promise<number> {
  const answer = answerOf(options)
  const problems = name === '' ? ['give the id of a submission, or --file'] : []
  problems.push(...answerProblems(answer), ...actorProblems(options))
  if (problems.length > 0) return usageError(context, problems)
  return withDatabases(context, async (databases) => {
    const found = await considerAnswer(databases, name, answer)
    if (found.kind === 'invalid') return usageError(context, found.problems)
    if (found.kind === 'missing') {
      context.stderr.write(`outboxd: there is no submission ${name}\n`)
      return exit.nothing
    }
    const { settling, outcome, questions } = found
    if (outcome.kind === 'left' || options.dryRun) return conclude(context, settling, outcome, options)
    if (!options.yes && !(await isMeant(context, questions))) return exit.unconfirmed
    return conclude(
      context,
      settling,
      await carryOut(context, operatorOf(databases, actorOf(context, options)), settling, answer),
      options,
    )
  })
}

const answerOf = ({ arrived, notArrived, takeBack, unchecked, newKey }: ResolveOptions): Answer => ({
  arrived: arrived?.trim(),
  notArrived: notArrived ?? false,
  takeBack: takeBack ?? false,
  unchecked: unchecked ?? false,
  newKey: newKey ?? false,
})

async function isMeant(context: CommandContext, questions: readonly Question[]): Promise<boolean> {
  for (const { text, isImplied } of questions)
    if (!(await (isImplied ? isNotRefused : isConfirmed)(context, text))) return false
  return true
}

const carryOut = (context: CommandContext, operator: Operator, settling: Settling, answer: Answer) =>
  resolveSubmission(
    {
      operator,
      askService: (transaction) => askForTransaction(readConfig(context.env), transaction, askingAloud(context)),
      onTestimony: (message) => void context.stderr.write(`${escapeLines(message)}.\n`),
    },
    settling,
    answer,
  )

function conclude(
  context: CommandContext,
  { submission: { id, outboxId } }: Settling,
  outcome: ResolveOutcome,
  options: ResolveOptions,
): number {
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
