import { systemClock } from '../clock.ts'
import { readCauses } from '../ledger/operator/search.ts'
import { countSubmissions, type SubmissionFilter, selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import { readProblems } from '../ledger/problems.ts'
import { statesNeedingAttention } from '../model.ts'
import type { Databases } from '../operations/databases.ts'
import {
  type FiltersRead,
  hasFilters,
  isLookup,
  narrowByText,
  readListFilters,
  searchIn,
} from '../operations/filters.ts'
import { skippedRowMessages } from '../operations/problemMessage.ts'
import { terminalOf } from '../plainText.ts'
import { filterOptions } from './selection.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exit, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'
import { causeJson, causesTable, submissionCsv, submissionJson, submissionTable } from './terminal/submissionTable.ts'

const limitDefault = 50

const csvLimitDefault = 100_000

/** The reason of each is read, to leave values out of it. */
const causesOfMax = 100_000

export const command = defineCommand({
  onlyLooks: true,
  description: 'list the records that need attention, or those in --state',
  options: [
    ...filterOptions(statesNeedingAttention, `the most to list (default: ${limitDefault})`),
    ['--newest', 'newest in their state first (default: longest)'],
    ['--by-cause', 'group records with the same code and reason, with the command to run for each group'],
    ['--csv', `as CSV, with a column to fill in for outboxd resolve --file; ${csvLimitDefault} at most`],
    ['--json', 'as JSON'],
  ],
  help: `Times without an offset are this machine's; printed times are UTC. What a record holds is not shown: see outboxd show.
With --transaction or --containing, and without --state, those of every state. --containing reads what records hold, the
newest first, 100,000 of them or for 10 seconds at most, and says where it stopped. --by-cause leaves values out of reasons.

Examples:
  outboxd list                              what waits for a person
  outboxd list --state failed --code E003   what the service's outage left behind
  outboxd list --state queued,sending       what is on its way
  outboxd list --containing "Miller & Co"   what there is of a customer
  outboxd list --transaction 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f   what the service calls so: its whole id
  outboxd list --by-cause                   what stands in the way, most frequent first
  outboxd list --state uncertain --csv      for the service's operator, who fills in what arrived
  outboxd list --since 2h --json            for a program`,
  /** @returns 3 if there are none */
  async action(context, options): Promise<number> {
    const read = readListFilters(options, systemClock.nowMs())
    const problems = read.kind === 'invalid' ? read.problems : []
    if (options.byCause && options.csv) problems.push('give --by-cause or --csv, not both')
    if (options.csv && options.json) problems.push('give --csv or --json, not both')
    if (problems.length > 0 || read.kind === 'invalid') return usageError(context, problems)
    if (options.byCause) return listCauses(context, options, read)
    const limit = read.limit ?? (options.csv ? csvLimitDefault : limitDefault)
    return withDatabases(context, async (databases) => {
      const filter = await narrowByText(
        searchIn(databases.ledger),
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
        return exit.nothing
      }
      return exit.done
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
    const filter = await narrowByText(searchIn(databases.ledger), read, (cut) => void context.stderr.write(`${cut}\n`))
    const { causes, lookedAt, isCut } = await readCauses(databases.ledger, filter, causesOfMax)
    const shown = causes.slice(0, limit)
    if (options.json)
      printJson(
        context,
        shown.map((cause) => causeJson(cause, read)),
      )
    else if (shown.length > 0) context.stdout.write(causesTable(shown, read))
    if (isCut) context.stderr.write(`Only the newest ${lookedAt} were looked at: narrow it with --since.\n`)
    if (causes.length > limit) context.stderr.write(`${limit} of ${causes.length} causes; --limit shows more.\n`)
    if (causes.length === 0) {
      context.stderr.write(noneMessage(options))
      return exit.nothing
    }
    context.stderr.write(
      'Mend the cause before you replay: the mapping, the row (--refresh), or what the service lacks. outboxd discard takes the same filters.\n',
    )
    return exit.done
  })
}

const countedMax = 100_000

async function totalMessage(databases: Databases, filter: SubmissionFilter, shown: number): Promise<string> {
  const total = await countSubmissions(databases.ledger, filter, countedMax + 1)
  return `${shown} of ${total > countedMax ? `more than ${countedMax}` : total}; --limit shows more.\n`
}

function noneMessage(options: ListOptions): string {
  const what =
    options.state === undefined && !isLookup(options)
      ? 'No submission waits for a person'
      : 'There is no such submission'
  const { state: _, ...others } = options
  const hint = options.transaction === undefined ? '' : ': --transaction takes the whole id'
  return `${what}${options.state === undefined && !hasFilters(others) ? '' : ' that matches'}${hint}.\n`
}

const problemsRead = 200

/** Names the rows that never became submissions. */
async function sayWhatIsSkipped(context: CommandContext, databases: Databases): Promise<void> {
  for (const message of skippedRowMessages(await readProblems(databases.ledger, problemsRead)))
    context.stderr.write(`${message}\n`)
}
