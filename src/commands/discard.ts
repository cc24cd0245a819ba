import { statesNeedingAttention } from '../model.ts'
import { operatorOf } from '../operations/databases.ts'
import { discardChange, discardSubmissions } from '../operations/discard.ts'
import { hasFilters } from '../operations/filters.ts'
import { referenceHelp } from '../operations/references.ts'
import { changeSubmissions, filterOptions, selectionProblems } from './selection.ts'
import { defineCommand } from './terminal/command.ts'
import { usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'give up records for good, with a reason',
  arguments: [['[ids...]', referenceHelp]],
  options: [
    ...filterOptions(statesNeedingAttention, 'the most to change, longest in their state first'),
    ['--reason <text>', 'why; it is kept with each record', { required: true }],
    asOption,
    ['--dry-run', 'show what would be discarded; change nothing'],
    ['--yes', 'do not ask'],
    ['--json', 'what was discarded and what was not, as JSON'],
  ],
  help: `A discarded record is never sent again; those that its key held back go on. Needs ids or at least one filter.
An accepted record is the service's: it may still complete it, and nobody will know. Accepted ones are given up only by
name or with --state accepted, and it asks.

Examples:
  outboxd discard outbox:4711 --reason "entered twice, see ticket 231"
  outboxd discard --state rejected --type order --until 2026-11-01 --reason "test data" --dry-run`,
  /** @returns 1 if some could not be discarded, 3 if there are none */
  async action(context, ids: readonly string[], options): Promise<number> {
    const problems = [
      ...selectionProblems(discardChange, ids, options),
      ...actorProblems({ ...options, reason: options.reason ?? '' }),
    ]
    if (ids.length === 0 && !hasFilters(options))
      problems.push('say which: ids, or a filter such as --state rejected (outboxd discard --help)')
    if (problems.length > 0) return usageError(context, problems)
    return withDatabases(context, (databases) => {
      const operator = operatorOf(databases, actorOf(context, options))
      return changeSubmissions(context, databases, discardChange, { ids, options }, async (submissions, run) =>
        options.dryRun
          ? { done: submissions.map(({ id }) => id), skipped: [] }
          : discardSubmissions(operator, submissions, run),
      )
    })
  },
})
