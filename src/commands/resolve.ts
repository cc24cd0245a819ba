import { readFile, stat } from 'node:fs/promises'
import { readConfig } from '../config.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import {
  type LineToSettle,
  type MatchedAnswers,
  matchAnswersToRecords,
  parseAnswersFile,
} from '../operations/answersFile.ts'
import { askServiceForTransaction, type TransactionAnswer } from '../operations/askForTransaction.ts'
import { hasFilters } from '../operations/filters.ts'
import { referenceHelp } from '../operations/references.ts'
import {
  findResolveOptionProblems,
  notArrivedRules,
  previewResolution,
  type RecordToSettle,
  type ResolveAnswer,
  type ResolveOutcome,
  resolveAllAsNotArrived,
  resolveSubmission,
} from '../operations/resolve.ts'
import {
  escapeControl,
  escapeControlInLines,
  pluralize,
  renderFirstLines,
  renderTable,
  truncateToOneLine,
} from '../plainText.ts'
import { changeSubmissions, filterOptions, findSelectionProblems } from './selection.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import {
  type CommandContext,
  createProgressPrinter,
  exitCodes,
  printJson,
  printUsageErrors,
  requestWaitOptions,
} from './terminal/context.ts'
import { changeOptions, findActorProblems, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'say whether a record arrived, if outboxd does not know',
  arguments: [['[id]', referenceHelp]],
  options: [
    ['--file <file.csv>', 'settle many records, with a filled-in CSV file'],
    ['--arrived <transaction-id>', 'it arrived under this id, and is tracked'],
    ['--not-arrived', 'it did not arrive: send it again, usually with the same idempotency key'],
    ['--take-back', 'an id that an operator gave is wrong: make the record uncertain again'],
    ['--unchecked', 'with --arrived or --file: do not ask the service'],
    ['--new-key', 'with --not-arrived or --file: send it with a new idempotency key'],
    ...filterOptions(notArrivedRules(false), 'settle at most this many, longest in their state first'),
    reasonOption,
    ...changeOptions,
  ],
  help: `Settle a record only if you know whether it arrived: if it did and you say --not-arrived, it is sent twice, unless the service
recognises the idempotency key. A record that the ledger had lost got a new key from \`outboxd recover\`, and the service cannot
recognise that key. The command also settles failed and rejected records that may have arrived (\`outboxd list\` notes them).

--arrived asks the service once. The command refuses an id that the service does not confirm, or that another record has. --take-back,
or --arrived with another id, corrects an id that an operator gave.

--not-arrived is refused while the record's last request may still arrive: for REQUEST_TIMEOUT_SECONDS and 3 s after it was sent.
With filters, it settles all uncertain records that match. It shows them first, and asks.

--file reads the CSV of \`outboxd list --state uncertain --csv\` after you filled in its column arrived_as: the transaction id,
not-arrived, or nothing. If any line is wrong, nothing is written. You can give the same file again.

Without a terminal, a question needs --yes, or the command exits with 4. Only --not-arrived needs no --yes there, unless the
record ended under an id that an operator gave.

Examples:
  outboxd list --state uncertain --csv > ask.csv
  outboxd resolve --file ask.csv --dry-run
  outboxd resolve outbox:4711 --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd resolve outbox:4711 --not-arrived
  outboxd resolve --not-arrived --created-since 2026-11-03T14:05Z --dry-run`,
  async action(context, name, options): Promise<number> {
    const { file, arrived, notArrived, takeBack } = options
    const isFiltered = hasFilters(options) || options.limit !== undefined
    if (isFiltered && (!notArrived || arrived || takeBack || name !== undefined || file !== undefined))
      return printUsageErrors(context, ['filters need --not-arrived, and no id or file'])
    if (isFiltered) return resolveFiltered(context, options)
    if (file === undefined) return resolveOne(context, name ?? '', options)
    if (name !== undefined || arrived !== undefined || notArrived || takeBack)
      return printUsageErrors(context, [
        '--file cannot be combined with an id, --arrived, --not-arrived or --take-back',
      ])
    return resolveFile(context, file, options)
  },
})

type ResolveOptions = OptionsOf<typeof command>

function resolveFiltered(context: CommandContext, options: ResolveOptions): Promise<number> {
  const { newKey = false, unchecked, dryRun } = options
  const rules = notArrivedRules(newKey)
  const problems = findSelectionProblems(rules, [], options)
  if (unchecked) problems.push('--unchecked needs --arrived')
  return withOperator(context, options, problems, (databases, operator) => {
    const parts = { ledger: databases.ledger, operator: dryRun ? null : operator }
    return changeSubmissions(context, databases, rules, { ids: [], options }, (submissions, run) =>
      resolveAllAsNotArrived(parts, submissions, newKey, run),
    )
  })
}

async function resolveOne(context: CommandContext, name: string, options: ResolveOptions): Promise<number> {
  const answer = answerOf(options)
  const problems = name === '' ? ['give the id of a record, such as outbox:4711, or --file FILE.csv'] : []
  problems.push(...findResolveOptionProblems(answer))
  return withOperator(context, options, problems, async (databases, operator) => {
    const found = await previewResolution(databases, name, answer)
    if (found.kind === 'invalid') return printUsageErrors(context, found.problems)
    if (found.kind === 'missing') {
      context.stderr.write(`outboxd: there is no record ${name}\n`)
      return exitCodes.nothing
    }
    const { settling, outcome, question } = found
    if (outcome.kind === 'left' || options.dryRun) return conclude(context, settling, outcome, options)
    const asks = question !== null && !options.yes
    if (asks && !(await askForConfirmation(context, question.text, { inScript: question.isImplied })))
      return exitCodes.unconfirmed
    const parts = {
      operator,
      askService: (transaction: TransactionRef) =>
        askServiceForTransaction(readConfig(context.env), transaction, {
          ...requestWaitOptions(context),
          ...{ waitMaxMs, goesFirst: true },
        }),
      onServiceAnswer: (message: string) => void context.stderr.write(`${escapeControlInLines(message)}.\n`),
    }
    return conclude(context, settling, await resolveSubmission(parts, settling, answer), options)
  })
}

const answerOf = ({ arrived, notArrived, takeBack, unchecked, newKey }: ResolveOptions): ResolveAnswer => ({
  arrived: arrived?.trim(),
  notArrived: notArrived ?? false,
  takeBack: takeBack ?? false,
  unchecked: unchecked ?? false,
  newKey: newKey ?? false,
})

function conclude(
  context: CommandContext,
  settling: RecordToSettle,
  outcome: ResolveOutcome,
  { json, dryRun = false }: ResolveOptions,
): number {
  if (json) printJson(context, settledJson([{ settling, outcome }], dryRun))
  const isSettled = outcome.kind === 'settled'
  const out = isSettled && dryRun && !json ? context.stdout : context.stderr
  out.write(`${escapeControlInLines(isSettled ? outcome.message : `outboxd: ${outcome.reason}`)}\n`)
  return isSettled ? exitCodes.done : exitCodes.failed
}

/** `line` is set if the answer comes from a file. */
interface Concluded {
  line?: number
  settling: { submission: Pick<RecordToSettle['submission'], 'id' | 'outboxId'> }
  outcome: ResolveOutcome
}

function settledJson(concluded: readonly Concluded[], dryRun: boolean) {
  const named = ({ line, settling: { submission } }: Concluded) => ({
    line,
    ...{ id: submission.id, outboxId: submission.outboxId },
  })
  return {
    dryRun,
    settled: concluded.flatMap((each) =>
      each.outcome.kind === 'settled'
        ? [{ ...named(each), arrivedAs: each.outcome.arrivedAs, state: each.outcome.state }]
        : [],
    ),
    leftAlone: concluded.flatMap((each) =>
      each.outcome.kind === 'left' ? [{ ...named(each), reason: each.outcome.reason }] : [],
    ),
  }
}

async function resolveFile(context: CommandContext, path: string, options: ResolveOptions): Promise<number> {
  const problems = findActorProblems(options)
  if (problems.length > 0) return printUsageErrors(context, problems)
  const text = await readText(path)
  if (typeof text !== 'string') return printUsageErrors(context, [text.problem])
  const read = parseAnswersFile(text)
  if (read.kind === 'invalid') return wrongLines(context, path, read.problems)
  const { unanswered } = read
  const { dryRun = false, yes, json } = options
  return withOperator(context, options, [], async (databases, operator) => {
    const checked = createProgressPrinter(context, (done: number) => `Checked ${done} of ${read.lines.length} …`)
    const matched = await matchAnswersToRecords(databases, read.lines, answerOf(options), checked)
    if (matched.kind === 'invalid') return wrongLines(context, path, matched.problems)
    const { settling } = matched
    if (!json || !yes) (dryRun && !json ? context.stdout : context.stderr).write(preview(matched, unanswered, options))
    const asks = settling.length > 0 && !dryRun && !yes
    if (asks && !(await askForConfirmation(context, `Settle ${pluralize(settling.length, 'record')}?`)))
      return exitCodes.unconfirmed
    const before = matched.skipped.map(({ line, submission, reason }): Concluded => {
      return { line, settling: { submission }, outcome: { kind: 'left', reason } }
    })
    const now = dryRun ? settling : await settleLines(context, operator, settling)
    const concluded = [...before, ...now]
    const done = concluded.filter(({ outcome }) => outcome.kind === 'settled').length
    const left = concluded.length - done
    if (json) printJson(context, { ...settledJson(concluded, dryRun), unanswered })
    else context.stderr.write(leftLines(now))
    const leftAlone = left > 0 ? `; ${pluralize(left, 'record')} left alone` : ''
    context.stderr.write(`${dryRun ? 'Would settle' : 'Settled'} ${pluralize(done, 'record')}${leftAlone}.\n`)
    if (context.signal.aborted) context.stderr.write('Interrupted before the rest. Give the file again.\n')
    if (settling.length === 0 && left === 0) return exitCodes.nothing
    if (dryRun && done > 0) return exitCodes.done
    return left > 0 || context.signal.aborted ? exitCodes.failed : exitCodes.done
  })
}

const bytesMax = 10_000_000

async function readText(path: string): Promise<string | { problem: string }> {
  try {
    const { size } = await stat(path)
    if (size > bytesMax) return { problem: `--file ${path}: the file has ${size} bytes. At most ${bytesMax} are read` }
    return await readFile(path, 'utf8')
  } catch (error) {
    return { problem: `--file ${path}: ${(error as Error).message}` }
  }
}

const problemsShown = 50

function wrongLines(context: CommandContext, path: string, problems: readonly string[]): number {
  const shown = problems
    .slice(0, problemsShown)
    .map((problem) => escapeControl(`${path}, ${truncateToOneLine(problem, 400)}`))
  const end = `Wrong lines: ${problems.length}. Nothing was changed. Correct the file and give it again`
  return printUsageErrors(context, [...shown, end])
}

const rowsShown = 5

function preview(
  { settling, skipped }: Extract<MatchedAnswers, { kind: 'value' }>,
  unanswered: number,
  { unchecked, newKey }: ResolveOptions,
): string {
  const arrived = settling.filter(({ answer }) => !answer.notArrived).length
  const notArrived = settling.length - arrived
  const more = settling.length - rowsShown
  const asked = unchecked ? 'without asking the service' : 'if the service knows their ids'
  const key = newKey ? 'with a new idempotency key' : 'usually with the same idempotency key'
  const rows = settling
    .slice(0, rowsShown)
    .map(({ line, settling: { detail }, answer }) => [
      ...[String(line), truncateToOneLine(detail.outboxId, 36), detail.state],
      answer.notArrived ? 'not arrived' : `arrived as ${answer.arrived}`,
    ])
  return [
    `This would settle ${pluralize(settling.length, 'record')}:\n`,
    arrived > 0 ? `  ${arrived} arrived, ${asked}\n` : '',
    notArrived > 0 ? `  ${notArrived} did not arrive, and will be sent again, ${key}\n` : '',
    rows.length > 0 ? `\n${renderTable(['LINE', 'OUTBOX', 'STATE', 'ANSWER'], rows)}` : '',
    more > 0 ? `... and ${more} more\n` : '',
    unanswered > 0 ? `${pluralize(unanswered, 'line')} without an answer, ignored\n` : '',
    renderFirstLines(
      skipped.map(({ line, reason }) => `line ${line}: ${reason}`),
      skippedShown,
    ),
  ].join('')
}

const skippedShown = 20

const leftLines = (concluded: readonly Concluded[]): string =>
  renderFirstLines(
    concluded.flatMap(({ line, outcome }) => (outcome.kind === 'left' ? [`line ${line}: ${outcome.reason}`] : [])),
    skippedShown,
  )

/** Long, because daemons use the budget, too. */
const waitMaxMs = 300_000

const silent: TransactionAnswer = {
  kind: 'silent',
  message: 'the service was not asked, because it did not answer about an earlier line',
}

async function settleLines(
  context: CommandContext,
  operator: Operator,
  lines: readonly LineToSettle[],
): Promise<Concluded[]> {
  const progress = createProgressPrinter(context, (done: number) => `Settled ${done} of ${lines.length} …`)
  let isSilent = false
  async function askService(transaction: TransactionRef): Promise<TransactionAnswer> {
    if (isSilent) return silent
    const asking = { ...requestWaitOptions(context), waitMaxMs }
    const testimony = await askServiceForTransaction(readConfig(context.env), transaction, asking)
    isSilent = testimony.kind === 'silent' || testimony.kind === 'unasked'
    return testimony
  }
  const concluded: Concluded[] = []
  try {
    for (const { line, settling, answer } of lines) {
      if (context.signal.aborted) break
      const outcome = await resolveSubmission({ operator, askService, onServiceAnswer() {} }, settling, answer)
      concluded.push({ line, settling, outcome })
      progress(concluded.length)
    }
  } catch (error) {
    context.stderr.write(
      `Stopped by an error after ${concluded.length} of ${pluralize(lines.length, 'record')}. Give the file again.\n`,
    )
    throw error
  }
  return concluded
}
