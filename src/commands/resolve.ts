import { readConfig } from '../config.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { askForTransaction } from '../operations/askForTransaction.ts'
import { operatorOf } from '../operations/databases.ts'
import { referenceHelp } from '../operations/references.ts'
import {
  previewResolution,
  type Question,
  type ResolveAnswer,
  type ResolveOutcome,
  resolveOptionProblems,
  resolveSubmission,
  type Settling,
} from '../operations/resolve.ts'
import { escapeLines } from '../plainText.ts'
import { resolveFile } from './resolveFile.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { isConfirmed, isConfirmedOrScripted } from './terminal/confirm.ts'
import { type CommandContext, exitCodes, printJson, slotWaitOptions, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, dryRunOption, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'say whether an uncertain record arrived',
  arguments: [['[id]', referenceHelp]],
  options: [
    ['--file <file.csv>', 'settle many records, with a filled-in CSV file'],
    ['--arrived <transaction-id>', 'it arrived under this id, and is tracked'],
    ['--not-arrived', 'it did not arrive: send it again with the same idempotency key'],
    ['--take-back', "an operator's id is wrong: make it uncertain again"],
    ['--unchecked', 'with --arrived or --file: do not ask the service'],
    ['--new-key', 'with --not-arrived or --file: send it with a new idempotency key'],
    asOption,
    reasonOption,
    dryRunOption,
    ['--yes', 'do not ask for confirmation'],
    ['--json', 'print JSON'],
  ],
  help: `Settle a record only if you know whether it arrived: if it did and you say --not-arrived, it is sent twice, unless the service
recognises the idempotency key. A record that the ledger had lost has a new key since \`outboxd recover\`, which the service cannot
recognise. The command also settles failed and rejected records that may have arrived (\`outboxd list\` notes them).

--arrived asks the service once. It refuses an id that the service does not confirm, or that another record has. --take-back,
or --arrived with another id, corrects an id that an operator gave.

--file reads the CSV of \`outboxd list --state uncertain --csv\` after you filled in its column arrived_as: the transaction id,
not-arrived, or nothing. If any line is wrong, nothing is written. You can give the same file again.

--not-arrived of one record asks on a terminal only, and goes on unasked in a script, unless the record ended under an id that an
operator gave. Whatever else asks needs a terminal or --yes, and exits with 4 without them.

Examples:
  outboxd list --state uncertain --csv > ask.csv
  outboxd resolve --file ask.csv --dry-run
  outboxd resolve outbox:4711 --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd resolve outbox:4711 --not-arrived`,
  async action(context, name, options): Promise<number> {
    if (options.file === undefined) return resolveOne(context, name ?? '', options)
    const alone = name === undefined && options.arrived === undefined && !options.notArrived && !options.takeBack
    if (!alone)
      return usageError(context, ['--file cannot be combined with an id, --arrived, --not-arrived or --take-back'])
    return resolveFile(context, options.file, options)
  },
})

type ResolveOptions = OptionsOf<typeof command>

async function resolveOne(context: CommandContext, name: string, options: ResolveOptions): Promise<number> {
  const answer = answerOf(options)
  const problems = name === '' ? ['give the id of a record, such as outbox:4711, or --file FILE.csv'] : []
  problems.push(...resolveOptionProblems(answer), ...actorProblems(options))
  if (problems.length > 0) return usageError(context, problems)
  return withDatabases(context, async (databases) => {
    const found = await previewResolution(databases, name, answer)
    if (found.kind === 'invalid') return usageError(context, found.problems)
    if (found.kind === 'missing') {
      context.stderr.write(`outboxd: there is no record ${name}\n`)
      return exitCodes.nothing
    }
    const { settling, outcome, questions } = found
    if (outcome.kind === 'left' || options.dryRun) return conclude(context, settling, outcome, options)
    if (!options.yes && !(await isMeant(context, questions))) return exitCodes.unconfirmed
    return conclude(
      context,
      settling,
      await carryOut(context, operatorOf(databases, actorOf(context, options)), settling, answer),
      options,
    )
  })
}

const answerOf = ({ arrived, notArrived, takeBack, unchecked, newKey }: ResolveOptions): ResolveAnswer => ({
  arrived: arrived?.trim(),
  notArrived: notArrived ?? false,
  takeBack: takeBack ?? false,
  unchecked: unchecked ?? false,
  newKey: newKey ?? false,
})

async function isMeant(context: CommandContext, questions: readonly Question[]): Promise<boolean> {
  for (const { text, isImplied } of questions)
    if (!(await (isImplied ? isConfirmedOrScripted : isConfirmed)(context, text))) return false
  return true
}

const carryOut = (context: CommandContext, operator: Operator, settling: Settling, answer: ResolveAnswer) =>
  resolveSubmission(
    {
      operator,
      askService: (transaction) => askForTransaction(readConfig(context.env), transaction, slotWaitOptions(context)),
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
  return isSettled ? exitCodes.done : exitCodes.failed
}
