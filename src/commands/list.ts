import { systemClock } from '../clock.ts'
import { countFailureCauses } from '../ledger/operator/search.ts'
import { type SubmissionFilter, selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import { readProblems } from '../ledger/problems.ts'
import { states, statesNeedingAttention } from '../model/submission.ts'
import type { Databases } from '../operations/databases.ts'
import { createTextSearch, hasFilters, narrowFilterByText, parseListFilters } from '../operations/filters.ts'
import { skippedRowMessages } from '../operations/problemMessages.ts'
import { submissionCsv } from '../operations/submissionCsv.ts'
import { quoteForShell, terminalOf } from '../plainText.ts'
import { filterOptions } from './selection.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'
import { causeJson, causesTable, isReplayable, submissionJson, submissionTable } from './terminal/submissionTable.ts'

const limitDefault = 50

const csvLimitDefault = 100_000

/** The most records to group, because grouping reads the error text of each. */
const causesOfMax = 100_000

export const command = defineCommand({
  onlyLooks: true,
  description: 'list the records that need attention, or those in --state',
  options: [
    ...filterOptions(
      { allowedStates: states, defaultStates: statesNeedingAttention },
      `list at most this many (default: ${limitDefault})`,
    ),
    ['--newest', 'list the latest changes of state first (default: the oldest first)'],
    ['--by-cause', 'group records by code and reason; each group shows the command to run'],
    ['--csv', `print CSV, with a column to fill in for outboxd resolve; at most ${csvLimitDefault} lines`],
    ['--json', 'print JSON'],
  ],
  help: `Without --state it lists failed, rejected and uncertain records; with --transaction or --containing, records in every state. It
does not print the contents of records: use \`outboxd show\`. Printed times are UTC. --containing searches the newest 100,000
records, for at most 10 seconds.

Examples:
  outboxd list                              what needs attention
  outboxd list --by-cause                   the same, grouped by cause, uncertain ones first
  outboxd list --state failed --code E003   what an outage of the service left behind
  outboxd list --containing "Miller & Co"   all records of a customer
  outboxd list --transaction 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd list --state uncertain --csv      for the operator of the service, who fills in what arrived
  outboxd list --since 2h --json            for a program`,
  async action(context, options): Promise<number> {
    const read = parseListFilters(options, systemClock.nowMs())
    const problems = read.kind === 'invalid' ? read.problems : []
    if (options.byCause && options.csv) problems.push('give --by-cause or --csv, not both')
    if (options.csv && options.json) problems.push('give --csv or --json, not both')
    if (problems.length > 0 || read.kind === 'invalid') return printUsageErrors(context, problems)
    return withDatabases(context, async (databases) => {
      const say = (line: string) => void context.stderr.write(`${line}\n`)
      const filter = await narrowFilterByText(createTextSearch(databases.ledger), read, say)
      const limit = read.limit ?? (options.csv ? csvLimitDefault : limitDefault)
      const asked = { filter, limit, containing: read.containing }
      const found = await (options.byCause ? listCauses : listRecords)(context, databases, options, asked)
      if (found > limit) say(`Only the first ${limit} are listed. --limit shows more.`)
      if (found === 0) say(noneMessage(options))
      return found === 0 ? exitCodes.nothing : exitCodes.done
    })
  },
})

const beforeReplay =
  'Before you replay, fix the cause: the mapping, the row (then --refresh), or the data of the service. `outboxd discard` takes the same filters.'

function noneMessage(options: ListOptions): string {
  if (!hasFilters(options)) return 'No record needs attention.'
  if (options.key === undefined || options.state !== undefined) return 'No record matches.'
  return `No record that matches needs attention. \`outboxd show ${quoteForShell(`key:${options.key}`)}\` looks in all states.`
}

type ListOptions = OptionsOf<typeof command>

interface Asked {
  filter: SubmissionFilter
  limit: number
  containing: string | null
}

/** @returns the number of records found, at most one more than the limit */
async function listRecords(
  context: CommandContext,
  { ledger }: Databases,
  { json, csv, newest }: ListOptions,
  { filter, limit }: Asked,
): Promise<number> {
  const found = await selectSubmissions(ledger, filter, limit + 1, newest ? 'newest' : 'longest')
  const submissions = found.slice(0, limit)
  if (json) printJson(context, submissions.map(submissionJson))
  else if (csv) context.stdout.write(submissionCsv(submissions))
  else if (found.length > 0) context.stdout.write(submissionTable(submissions, terminalOf(context.stdout)))
  // Skipped rows are not in the ledger.
  for (const message of skippedRowMessages(await readProblems(ledger))) context.stderr.write(`${message}\n`)
  return found.length
}

async function listCauses(
  context: CommandContext,
  { ledger }: Databases,
  { json }: ListOptions,
  asked: Asked,
): Promise<number> {
  const { causes, lookedAt, isCut } = await countFailureCauses(ledger, asked.filter, causesOfMax)
  const shown = causes.slice(0, asked.limit)
  if (json)
    printJson(
      context,
      shown.map((cause) => causeJson(cause, asked)),
    )
  else if (shown.length > 0) context.stdout.write(causesTable(shown, asked))
  if (shown.some(isReplayable)) context.stderr.write(`${beforeReplay}\n`)
  if (isCut) context.stderr.write(`Only the newest ${lookedAt} records were read: narrow the list with --since.\n`)
  return causes.length
}
