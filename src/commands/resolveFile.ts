import { readFile, stat } from 'node:fs/promises'
import { readConfig } from '../config.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { resolveAsArrived, resolveAsNotArrived } from '../ledger/operator/resolveSubmission.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import { type AskedTestimony, askForTransactions } from '../operations/askForTransaction.ts'
import { operatorOf } from '../operations/databases.ts'
import {
  type MatchedAnswers,
  matchAnswersToRecords,
  type SettlingLine,
  type SkippedLine,
} from '../operations/matchAnswers.ts'
import { readAnswersFile } from '../operations/readAnswersFile.ts'
import { escapeControl, pluralize, renderFirstLines, renderTable, truncate } from '../plainText.ts'
import { isConfirmed } from './terminal/confirm.ts'
import {
  type CommandContext,
  createProgress,
  exitCodes,
  printJson,
  slotWaitOptions,
  usageError,
} from './terminal/context.ts'
import { type ActorOptions, actorOf, actorProblems, withDatabases } from './terminal/operator.ts'

export interface ResolveFileOptions extends ActorOptions {
  unchecked?: boolean | undefined
  newKey?: boolean | undefined
  dryRun?: boolean | undefined
  yes?: boolean | undefined
  json?: boolean | undefined
}

export async function resolveFile(context: CommandContext, path: string, options: ResolveFileOptions): Promise<number> {
  const problems = actorProblems(options)
  if (problems.length > 0) return usageError(context, problems)
  const text = await readText(path)
  if (typeof text !== 'string') return usageError(context, [text.problem])
  const read = readAnswersFile(text)
  if (read.kind === 'invalid') return wrongLines(context, path, read.problems)
  return withDatabases(context, async (databases) => {
    const checked = createProgress(context, (done: number) => `Checked ${done} of ${read.lines.length} …`)
    const matched = await matchAnswersToRecords(databases, read.lines, checked)
    if (matched.kind === 'invalid') return wrongLines(context, path, matched.problems)
    const { unanswered } = read
    if (options.dryRun && !options.json) context.stdout.write(preview(matched, unanswered, options))
    else if (!options.json || !options.yes) context.stderr.write(preview(matched, unanswered, options))
    const { settling } = matched
    const asks = settling.length > 0 && !options.dryRun && !options.yes
    const question = `Settle ${pluralize(settling.length, 'record')}?`
    if (asks && !(await isConfirmed(context, question))) return exitCodes.unconfirmed
    const progress = createProgress(context, (done: number) => `Settled ${done} of ${settling.length} …`)
    const operator = operatorOf(databases, actorOf(context, options))
    const run = { context, operator, options, done: [], skipped: [...matched.skipped], progress }
    if (options.dryRun) return conclude({ ...run, done: settling }, matched, unanswered)
    await settle(run, settling)
    return conclude(run, matched, unanswered)
  })
}

const bytesMax = 10_000_000

async function readText(path: string): Promise<string | { problem: string }> {
  try {
    const { size } = await stat(path)
    if (size > bytesMax) return { problem: `--file ${path}: it has ${size} bytes, the most is ${bytesMax}` }
    return await readFile(path, 'utf8')
  } catch (error) {
    return { problem: `--file ${path}: ${(error as Error).message}` }
  }
}

const problemsShown = 50

function wrongLines(context: CommandContext, path: string, problems: readonly string[]): number {
  const shown = problems.slice(0, problemsShown).map((problem) => escapeControl(`${path}, ${truncate(problem, 400)}`))
  const more = problems.length - shown.length
  const end = `${more > 0 ? `and ${more} more problems. ` : ''}Nothing was changed. Correct the file and give it again`
  return usageError(context, [...shown, end])
}

const rowsShown = 5

function preview(
  { settling, skipped }: Extract<MatchedAnswers, { kind: 'value' }>,
  unanswered: number,
  { unchecked, newKey }: ResolveFileOptions,
): string {
  const arrived = settling.filter(({ transaction }) => transaction !== null).length
  const corrections = settling.filter(({ isCorrection }) => isCorrection).length
  const more = settling.length - rowsShown
  const asked = unchecked ? 'without asking the service' : 'if the service knows their ids'
  const key = newKey ? 'a new idempotency key' : 'the same idempotency key'
  return [
    `This would settle ${pluralize(settling.length, 'record')}:\n`,
    arrived > 0 ? `  ${arrived} arrived, ${asked}\n` : '',
    settling.length > arrived ? `  ${settling.length - arrived} did not arrive, and are sent again with ${key}\n` : '',
    corrections > 0 ? `  ${corrections} of them correct what an operator said before\n` : '',
    settling.length > 0 ? `\n${linesTable(settling.slice(0, rowsShown))}` : '',
    more > 0 ? `... and ${more} more\n` : '',
    unanswered > 0 ? `${pluralize(unanswered, 'line')} without an answer, ignored\n` : '',
    skippedLines(skipped),
  ].join('')
}

const linesTable = (settling: readonly SettlingLine[]) =>
  renderTable(
    ['LINE', 'OUTBOX', 'STATE', 'ANSWER'],
    settling.map(({ line, submission: { outboxId, state }, transaction }) => [
      String(line),
      truncate(outboxId, 36),
      state,
      transaction === null ? 'not arrived' : `arrived as ${transaction.transactionId}`,
    ]),
  )

const skippedShown = 20

function skippedLines(skipped: readonly SkippedLine[]): string {
  const lines = skipped.map(({ line, submission, reason }) => `line ${line}: outbox:${submission.outboxId} ${reason}`)
  return renderFirstLines(lines, skippedShown)
}

interface Run {
  context: CommandContext
  operator: Operator
  options: ResolveFileOptions
  done: SettlingLine[]
  skipped: SkippedLine[]
  progress: (done: number) => void
}

async function settle(run: Run, settling: readonly SettlingLine[]): Promise<void> {
  const { context, operator, options, progress } = run
  for (const each of settling.filter(({ transaction }) => transaction === null)) {
    if (context.signal.aborted) return
    const settled = await resolveAsNotArrived(operator, each.submission, options.newKey ?? false)
    note(run, each, settled === null ? changed : null)
    progress(run.done.length)
  }
  await settleArrived(run, settling.filter(isArrived))
}

type ArrivedLine = SettlingLine & { transaction: TransactionRef }

const isArrived = (each: SettlingLine): each is ArrivedLine => each.transaction !== null

/** The service answers this many before the slots expire. */
const askedAtOnce = 5

/** After this many batches without a slot the command gives up. Each batch waits ten seconds. */
const unaskedMax = 30
const silentMax = 2

async function settleArrived(run: Run, lines: readonly ArrivedLine[]): Promise<void> {
  const { context, options, progress } = run
  let waiting = [...lines]
  let unasked = 0
  let silent = 0
  while (waiting.length > 0 && !context.signal.aborted && unasked < unaskedMax && silent < silentMax) {
    const batch = waiting.slice(0, askedAtOnce)
    const said = options.unchecked ? batch.map(() => believed) : await ask(run, batch)
    unasked = said.every(({ kind }) => kind === 'unasked') ? unasked + 1 : 0
    silent = said.every(({ kind }) => kind === 'silent') ? silent + 1 : 0
    const left: ArrivedLine[] = []
    for (const [i, each] of batch.entries()) {
      const testimony = said[i] ?? { kind: 'unasked' }
      if (testimony.kind === 'unasked') left.push(each)
      else if (testimony.kind === 'known') note(run, each, await follow(run, each))
      else note(run, each, testimony.message)
    }
    waiting = [...left, ...waiting.slice(batch.length)]
    progress(run.done.length)
  }
  if (context.signal.aborted) return
  const why = silent >= silentMax ? 'the service does not answer' : 'no slot of the budget became free'
  for (const each of waiting) note(run, each, `was not tried: ${why}`)
}

const believed: AskedTestimony = { kind: 'known', message: '' }

const ask = ({ context }: Run, batch: readonly ArrivedLine[]) =>
  askForTransactions(
    readConfig(context.env),
    batch.map(({ transaction }) => transaction),
    slotWaitOptions(context, 'free slots'),
  )

async function follow({ operator }: Run, { submission, transaction }: ArrivedLine): Promise<string | null> {
  const settled = await resolveAsArrived(operator, submission, transaction)
  if (settled.kind === 'changed') return changed
  return settled.kind === 'taken' ? `was left alone: this id is the transaction of outbox:${settled.by.outboxId}` : null
}

const changed = 'has changed'

function note({ done, skipped }: Run, each: SettlingLine, reason: string | null): void {
  if (reason === null) done.push(each)
  else skipped.push({ line: each.line, submission: each.submission, reason })
}

function conclude(
  { context, options, done, skipped }: Run,
  matched: Extract<MatchedAnswers, { kind: 'value' }>,
  unanswered: number,
): number {
  const { dryRun, json } = options
  const skippedLater = skipped.slice(matched.skipped.length)
  if (json)
    printJson(context, {
      dryRun: dryRun ?? false,
      settled: done.map(({ line, submission: { id, outboxId }, transaction }) => ({
        ...{ line, id, outboxId },
        arrivedAs: transaction?.transactionId ?? null,
      })),
      leftAlone: skipped.map(({ line, submission: { id, outboxId }, reason }) => ({ line, id, outboxId, reason })),
      unanswered,
    })
  else context.stderr.write(skippedLines(skippedLater))
  const left = skipped.length > 0 ? `; ${pluralize(skipped.length, 'record')} left alone` : ''
  context.stderr.write(`${dryRun ? 'Would settle' : 'Settled'} ${pluralize(done.length, 'record')}${left}.\n`)
  if (context.signal.aborted) context.stderr.write('Interrupted before the rest. Give the file again.\n')
  if (matched.settling.length === 0 && skipped.length === 0) return exitCodes.nothing
  if (dryRun && done.length > 0) return exitCodes.done
  return skipped.length > 0 || context.signal.aborted ? exitCodes.failed : exitCodes.done
}
