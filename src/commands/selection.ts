import { systemClock } from '../clock.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import {
  type BulkChangeRules,
  type BulkChangeRun,
  type BulkOutcome,
  chooseSubmissions,
  findChoiceProblems,
  groupSubmissionsByKind,
  previewedRecordsMax,
  recordsPerChangeMax,
  type SkippedRecord,
} from '../operations/bulkChange.ts'
import type { Databases } from '../operations/databases.ts'
import { createTextSearch, type FilterOptions } from '../operations/filters.ts'
import { mayHaveArrivedCell } from '../operations/submissionFacts.ts'
import { capitalize, pluralize, renderFirstLines, renderTable, truncateToOneLine } from '../plainText.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { submissionTable } from './terminal/submissionTable.ts'

export const filterOptions = (
  { allowedStates, defaultStates }: Pick<BulkChangeRules, 'allowedStates' | 'defaultStates'>,
  limitHelp: string,
) =>
  [
    [
      '--state <states>',
      `one or more of ${allowedStates.join(', ')} (default: ${defaultStates.join(',')})`,
      { values: allowedStates },
    ],
    ['--code <code>', 'error code, such as E001', { values: ['E001', 'E002', 'E003'] }],
    ['--type <type>', "the record's type"],
    ['--key <key>', "the record's key"],
    ['--since <when>', 'records that entered their state since this date or time; 2h: two hours ago'],
    ['--until <when>', 'records that entered their state before this date or time'],
    ['--created-since <when>', 'records whose row was created since this date or time'],
    ['--transaction <id>', "the service's whole id of the transaction or order"],
    ['--containing <text>', 'records with this text in payload, body or key, such as an order number'],
    ['--may-have-arrived', 'only failed or rejected records that may have arrived'],
    ['--cause <cause>', 'records of one cause: the eight digits that outboxd list --by-cause shows'],
    ['--limit <number>', limitHelp],
  ] as const

interface BulkOptions extends FilterOptions {
  dryRun?: boolean | undefined
  yes?: boolean | undefined
  json?: boolean | undefined
}

export function findSelectionProblems(change: BulkChangeRules, ids: readonly string[], options: BulkOptions): string[] {
  return findChoiceProblems(change, { ids, filters: options, nowMs: systemClock.nowMs() })
}

export async function changeSubmissions(
  context: CommandContext,
  databases: Databases,
  change: BulkChangeRules,
  { ids, options }: { ids: readonly string[]; options: BulkOptions },
  carryOut: (submissions: readonly ListedSubmission[], run: BulkChangeRun) => Promise<BulkOutcome>,
): Promise<number> {
  const choice = { ids, filters: options, nowMs: systemClock.nowMs() }
  const onCut = (message: string) => void context.stderr.write(`${message}\n`)
  const { ledger } = databases
  const chosen = await chooseSubmissions(ledger, createTextSearch(ledger), change, choice, onCut)
  if (chosen.kind === 'invalid') return printUsageErrors(context, chosen.problems)
  if (chosen.kind === 'missing') {
    for (const problem of chosen.problems) context.stderr.write(`outboxd: ${problem}\n`)
    return exitCodes.nothing
  }
  const { submissions } = chosen
  if (submissions.length === 0 && chosen.skipped.length === 0) {
    context.stderr.write(`There is nothing to ${change.verb}.\n`)
    return exitCodes.nothing
  }
  const mustAsk = ids.length !== 1 || submissions.some(change.asksAlways)
  if (submissions.length > 0 && !options.dryRun) {
    if (!options.json)
      context.stderr.write(mustAsk ? preview(change, submissions, chosen.skipped) : change.riskOf(submissions))
    const question = `${capitalize(change.verb)} ${pluralize(submissions.length, 'record')}?`
    if (mustAsk && !options.yes && !(await askForConfirmation(context, question))) return exitCodes.unconfirmed
  }
  const { done, skipped: left, failure } = await carryOut(submissions, { signal: context.signal })
  const skipped = [...chosen.skipped, ...left]
  if (options.dryRun && !options.json) {
    const would = new Set(done)
    const changing = submissions.filter(({ id }) => would.has(id))
    context.stdout.write(preview(change, changing, skipped, submissions.length))
  } else if (!options.json) context.stderr.write(renderSkippedRecords(skipped))
  const exitCode = printChangeResult(context, change, { done, skipped }, options)
  if (failure !== undefined) throw failure
  return options.dryRun && submissions.length > 0 ? exitCodes.done : exitCode
}

/** A verb and its past form, which is also a key of the JSON. */
interface ChangeWords {
  verb: string
  did: string
}

export function printChangeResult(
  context: CommandContext,
  { verb, did }: ChangeWords,
  { done, skipped }: BulkOutcome,
  { dryRun = false, json }: BulkOptions,
  textBeforeCount = '',
): number {
  if (json)
    printJson(context, {
      dryRun,
      [did]: done,
      leftAlone: skipped.map(({ submission: { id, outboxId }, reason }) => ({ id, outboxId, reason })),
    })
  const left = skipped.length > 0 ? `; ${pluralize(skipped.length, 'record')} left alone` : ''
  const said = dryRun ? `Would ${verb}` : capitalize(did)
  context.stderr.write(`${said} ${textBeforeCount}${pluralize(done.length, 'record')}${left}.\n`)
  if (context.signal.aborted) context.stderr.write('Interrupted before the rest. Run the command again.\n')
  return skipped.length > 0 || context.signal.aborted ? exitCodes.failed : exitCodes.done
}

function preview(
  change: BulkChangeRules,
  submissions: readonly ListedSubmission[],
  skipped: readonly SkippedRecord[],
  chosen: number = submissions.length,
): string {
  const more = submissions.length - previewedRecordsMax
  const cap =
    chosen === recordsPerChangeMax
      ? ` (at most ${recordsPerChangeMax} at once: run the command again for the rest)`
      : ''
  return [
    `This would ${change.verb} ${pluralize(submissions.length, 'record')}${cap}:\n\n`,
    renderTable(
      ['COUNT', 'STATE', 'TYPE', 'CODE', 'NOTE'],
      groupSubmissionsByKind(submissions).map((group) => [
        String(group.count),
        group.state,
        truncateToOneLine(group.type, 24),
        truncateToOneLine(group.code ?? '-', 16),
        mayHaveArrivedCell(group),
      ]),
    ),
    `\n${submissionTable(submissions.slice(0, previewedRecordsMax))}`,
    more > 0 ? `... and ${more} more\n` : '',
    '\n',
    change.riskOf(submissions),
    renderSkippedRecords(skipped),
  ].join('')
}

const skippedShownMax = 20

export function renderSkippedRecords(skipped: readonly SkippedRecord[]): string {
  const lines = skipped.map(({ submission, reason }) => `outbox:${submission.outboxId} (${submission.id}) ${reason}`)
  return renderFirstLines(lines, skippedShownMax)
}
