import { discardRules, discardSubmissions } from '../operations/discard.ts'
import { hasFilters } from '../operations/filters.ts'
import { referenceHelp } from '../operations/references.ts'
import { changeSubmissions, filterOptions, findSelectionProblems } from './selection.ts'
import { defineCommand } from './terminal/command.ts'
import { changeOptions, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'give up records for good, with a reason',
  arguments: [['[ids...]', referenceHelp]],
  options: [
    ...filterOptions(discardRules, 'change at most this many, longest in their state first'),
    ['--reason <text>', 'why; the log keeps it with each record', { required: true }],
    ...changeOptions,
  ],
  help: `A discarded record is never sent again, and later records of its key are sent. Give ids or at least one filter. Queued and
accepted records are discarded only by id or with --state. The service may still complete an accepted record, so the command asks
first.

Examples:
  outboxd discard outbox:4711 --reason "entered twice, see ticket 231"
  outboxd discard --state rejected --type order --until 2026-11-01 --reason "test data" --dry-run`,
  async action(context, ids: readonly string[], options): Promise<number> {
    const problems = findSelectionProblems(discardRules, ids, options)
    if (ids.length === 0 && !hasFilters(options))
      problems.push('give ids, such as outbox:4711, or a filter, such as --state rejected')
    return withOperator(context, { ...options, reason: options.reason ?? '' }, problems, (databases, operator) =>
      changeSubmissions(context, databases, discardRules, { ids, options }, async (submissions, run) =>
        discardSubmissions(operator, submissions, { ...run, dryRun: options.dryRun ?? false }),
      ),
    )
  },
})
