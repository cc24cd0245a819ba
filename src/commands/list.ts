import { systemClock } from '../clock.ts'
import { countFailureCauses } from '../ledger/operator/search.ts'
import { countSubmissions, type SubmissionFilter, selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import { readProblems } from '../ledger/problems.ts'
import { statesNeedingAttention } from '../model.ts'
import type { Databases } from '../operations/databases.ts'
import {
  createTextSearch,
  type FiltersRead,
  hasFilters,
  isRecordSearch,
  narrowFilterByText,
  readListFilters,
} from '../operations/filters.ts'
import { skippedRowMessages } from '../operations/problemMessages.ts'
import { terminalOf } from '../plainText.ts'
import { filterOptions } from './selection.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'
import { causeJson, causesTable, submissionCsv, submissionJson, submissionTable } from './terminal/submissionTable.ts'

const limitDefault = 50

const csvLimitDefault = 100_000

/** Bounded, because the error text of each record is read. */
const causesOfMax = 100_000

export const command = defineCommand({
  onlyLooks: true,
  description: 'list the records that need attention, or those in --state',
  options: [
    ...filterOptions(statesNeedingAttention, `list at most this many (default: ${limitDefault})`),
    ['--newest', 'those newest in their state first (default: longest first)'],
    ['--by-cause', 'group records by code and reason, each with its command'],
    ['--csv', `print CSV, with a column to fill in for outboxd resolve; at most ${csvLimitDefault} lines`],
    ['--json', 'print JSON'],
  ],
  help: `Without --state it lists failed, rejected and uncertain records; with --transaction or --containing, records in every state. It
does not print what a record holds: use \`outboxd show\`. Printed times are UTC. --containing searches the newest 100,000
records, for at most 10 seconds.

Examples:
  outboxd list                              what needs attention
  outboxd list --by-cause                   the same, grouped by cause, the most frequent first
  outboxd list --state failed --code E003   what an outage of the service left behind
  outboxd list --containing "Miller & Co"   all records of a customer
  outboxd list --transaction 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd list --state uncertain --csv      for the operator of the service, who fills in what arrived
  outboxd list --since 2h --json            for a program`,
  async action(context, options): Promise<number> {
    const read = readListFilters(options, systemClock.nowMs())
    const problems = read.kind === 'invalid' ? read.problems : []
    if (options.byCause && options.csv) problems.push('give --by-cause or --csv, not both')
    if (options.csv && options.json) problems.push('give --csv or --json, not both')
    if (problems.length > 0 || read.kind === 'invalid') return usageError(context, problems)
    if (options.byCause) return listCauses(context, options, read)
    const limit = read.limit ?? (options.csv ? csvLimitDefault : limitDefault)
    return withDatabases(context, async (databases) => {
      const filter = await narrowFilterByText(
        createTextSearch(databases.ledger),
        read,
        (cut) => void context.stderr.write(`${cut}\n`),
      )
      const found = await selectSubmissions(databases.ledger, filter, limit + 1, options.newest ? 'newest' : 'longest')
      const submissions = found.slice(0, limit)
      if (options.json) printJson(context, submissions.map(submissionJson))
      else if (options.csv) context.stdout.write(submissionCsv(submissions))
      else if (found.length > 0) context.stdout.write(submissionTable(submissions, terminalOf(context.stdout)))
      await sayWhatIsSkipped(context, databases)
      if (found.length > limit) context.stderr.write(await totalMessage(databases, filter, limit))
      if (found.length === 0) {
        context.stderr.write(noneMessage(options))
        return exitCodes.nothing
      }
      return exitCodes.done
    })
  },
})

type ListOptions = OptionsOf<typeof command>

async function listCauses(
  context: CommandContext,
  options: ListOptions,
  read: Extract<FiltersRead, { kind: 'value' }>,
): Promise<number> {
  const limit = read.limit ?? limitDefault
  return withDatabases(context, async (databases) => {
    const filter = await narrowFilterByText(
      createTextSearch(databases.ledger),
      read,
      (cut) => void context.stderr.write(`${cut}\n`),
    )
    const { causes, lookedAt, isCut } = await countFailureCauses(databases.ledger, filter, causesOfMax)
    const shown = causes.slice(0, limit)
    if (options.json)
      printJson(
        context,
        shown.map((cause) => causeJson(cause, read)),
      )
    else if (shown.length > 0) context.stdout.write(causesTable(shown, read))
    if (isCut) context.stderr.write(`Only the newest ${lookedAt} records were read: narrow the list with --since.\n`)
    if (causes.length > limit) context.stderr.write(`${limit} of ${causes.length} causes; --limit shows more.\n`)
    if (causes.length === 0) {
      context.stderr.write(noneMessage(options))
      return exitCodes.nothing
    }
    context.stderr.write(
      'Before you replay, fix the cause: the mapping, the row (then --refresh), or the data of the service. `outboxd discard` takes the same filters.\n',
    )
    return exitCodes.done
  })
}

const countedMax = 100_000

async function totalMessage(databases: Databases, filter: SubmissionFilter, shown: number): Promise<string> {
  const total = await countSubmissions(databases.ledger, filter, countedMax + 1)
  return `${shown} of ${total > countedMax ? `more than ${countedMax}` : total}; --limit shows more.\n`
}

function noneMessage(options: ListOptions): string {
  const what =
    options.state === undefined && !isRecordSearch(options) ? 'No record needs attention' : 'There is no such record'
  const { state: _, ...others } = options
  const hint = options.transaction === undefined ? '' : ': give --transaction the whole id'
  return `${what}${options.state === undefined && !hasFilters(others) ? '' : ' that matches'}${hint}.\n`
}

const problemsRead = 200

/** Names rows that never became records. */
async function sayWhatIsSkipped(context: CommandContext, databases: Databases): Promise<void> {
  for (const message of skippedRowMessages(await readProblems(databases.ledger, problemsRead)))
    context.stderr.write(`${message}\n`)
}
