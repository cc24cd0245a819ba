import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { describeFilters, type FilterOptions, readFilters } from '../cli/filters.ts'
import { printJson } from '../cli/printJson.ts'
import { submissionTable } from '../cli/submissionTable.ts'
import { escapeControl, pluralize, truncate } from '../cli/table.ts'
import { isoTime, showTime } from '../cli/time.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { systemClock } from '../clock.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { states, waitingForPerson } from '../model.ts'
import type { OperatorStore } from '../store/operatorStore.ts'

export interface ListOptions extends FilterOptions {
  json?: boolean
}

const limitDefault = 50

export function describeList(command: Command): Command {
  return describeFilters(
    command.description('list submissions, longest in their state first; without --state those that wait for a person'),
    waitingForPerson,
    `at most so many (default: ${limitDefault})`,
  )
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Times without an offset are this machine's; printed times are UTC. What a record holds is not shown: see outboxd show.

Examples:
  outboxd list                              what waits for a person
  outboxd list --state failed --code E003   what the service's outage left behind
  outboxd list --state queued,sending       what is on its way
  outboxd list --since 2h --json            for a program`,
    )
}

/** Prints the matching submissions. @returns 3 where there are none */
export async function list(context: CommandContext, options: ListOptions): Promise<number> {
  const read = readFilters(options, {
    defaultStates: waitingForPerson,
    allowedStates: states,
    whyNotAllowed: () => '',
    nowMs: systemClock.nowMs(),
  })
  if (read.kind === 'invalid') return usageError(context, read.problems)
  const limit = read.limit ?? limitDefault
  return withOperatorStore(context, async (store) => {
    const found = await store.select(read.filter, limit + 1)
    const submissions = found.slice(0, limit)
    if (options.json) printJson(context, submissions.map(jsonOf))
    else if (found.length > 0) context.stdout.write(submissionTable(submissions))
    await sayWhatIsSkipped(context, store)
    if (found.length > limit) context.stderr.write(`There are more: --limit ${limit * 10} shows up to that many.\n`)
    if (found.length === 0) {
      const what = options.state === undefined ? 'No submission waits for a person' : 'There is no such submission'
      context.stderr.write(`${what}${options.state === undefined && !hasOthers(options) ? '.' : ' that matches.'}\n`)
      return exit.nothing
    }
    return exit.done
  })
}

const problemsShown = 20

/** Rows that never became submissions are in no table of ours: words below it name them. */
async function sayWhatIsSkipped(context: CommandContext, store: OperatorStore): Promise<void> {
  const problems = await store.readProblems(10 * problemsShown)
  const skipped = problems.filter(({ kind }) => kind === 'row_skipped')
  for (const { subject, detail, retryMs } of skipped.slice(0, problemsShown)) {
    const retry = retryMs === null ? '' : ` (tried again ${showTime(retryMs)})`
    context.stderr.write(`${escapeControl(`outbox:${truncate(subject, 60)} is put off: ${detail}${retry}.`)}\n`)
  }
  const more = skipped.length - problemsShown
  if (more > 0) context.stderr.write(`And ${pluralize(more, 'row')} more at least: outboxd status --json names them.\n`)
}

const hasOthers = ({ code, type, key, since, until }: ListOptions) =>
  [code, type, key, since, until].some((value) => value !== undefined)

function jsonOf({ id, outboxId, type, key, state, code, error, mayHaveArrived, sinceMs }: ListedSubmission) {
  return { id, outboxId, type, key, state, code, since: isoTime(sinceMs), mayHaveArrived, error }
}
