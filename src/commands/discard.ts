import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { describeFilters, hasFilters } from '../cli/filters.ts'
import { printJson } from '../cli/printJson.ts'
import { referenceHelp } from '../cli/references.ts'
import {
  type BulkChange,
  type BulkOptions,
  batches,
  preview,
  type Skipped,
  selectForChange,
  selectionProblems,
  skippedLines,
} from '../cli/selection.ts'
import { pluralize } from '../cli/table.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type State, waitingForPerson } from '../model.ts'

export interface DiscardOptions extends BulkOptions {
  reason?: string
}

const discardable: readonly State[] = [...waitingForPerson, 'accepted']

const discardChange: BulkChange = {
  verb: 'discard',
  allowedStates: discardable,
  defaultStates: waitingForPerson,
  whyNotAllowed(state) {
    if (state === 'completed') return 'it has arrived'
    if (state === 'discarded') return 'it was given up before'
    return 'it is on its way; only failed, rejected, uncertain and accepted ones can be given up'
  },
  whySpared: null,
  riskOf(submissions) {
    const count = submissions.filter(isAccepted).length
    return count === 0
      ? ''
      : `The service has accepted ${pluralize(count, 'record')} of these and may complete what you give up: nobody will ask any more.\n`
  },
  asksAlways: isAccepted,
}

function isAccepted({ state }: ListedSubmission): boolean {
  return state === 'accepted'
}

const batchSize = 500
const reasonMost = 1_000

export function describeDiscard(command: Command): Command {
  return describeFilters(
    command
      .description('give up records that wait for a person, or accepted ones, for good, with a reason')
      .argument('[ids...]', referenceHelp),
    waitingForPerson,
    'at most so many, longest in their state first',
  )
    .requiredOption('--reason <text>', 'why; it is kept with each record')
    .option('--dry-run', 'show what would be discarded; change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'what was discarded and what was not, as JSON')
    .addHelpText(
      'after',
      `
A discarded record is never sent again; those that its key held back go on. Needs ids or at least one filter.
An accepted record is the service's: it may still complete it, and nobody will know. Accepted ones are given up only by
name or with --state accepted, and it asks.

Examples:
  outboxd discard outbox:4711 --reason "entered twice, see ticket 231"
  outboxd discard --state rejected --type order --until 2026-11-01 --reason "test data" --dry-run`,
    )
}

/** Gives submissions up. @returns 1 where some could not be discarded, 3 where there are none */
export async function discard(
  context: CommandContext,
  ids: readonly string[],
  options: DiscardOptions,
): Promise<number> {
  const reason = options.reason?.trim() ?? ''
  const problems = selectionProblems(discardChange, ids, options)
  if (reason === '') problems.push('--reason must say why')
  if (reason.length > reasonMost) problems.push(`--reason is longer than ${reasonMost} characters`)
  if (ids.length === 0 && !hasFilters(options))
    problems.push('say which: ids, or a filter such as --state rejected (outboxd discard --help)')
  if (problems.length > 0) return usageError(context, problems)
  return withOperatorStore(context, async (store) => {
    const chosen = await selectForChange(context, store, discardChange, { ids, options })
    if (chosen.kind === 'over') return chosen.exitCode
    const { submissions } = chosen
    if (options.dryRun && !options.json) context.stdout.write(preview(discardChange, submissions, chosen.skipped))
    const done: string[] = []
    const skipped: Skipped[] = [...chosen.skipped]
    for (const batch of batches(submissions, batchSize)) {
      if (context.signal.aborted) break
      const discarded = new Set(options.dryRun ? batch.map(({ id }) => id) : await store.discard(batch, reason))
      done.push(...discarded)
      for (const submission of batch)
        if (!discarded.has(submission.id)) skipped.push({ submission, reason: 'changed meanwhile and was left alone' })
    }
    if (!options.dryRun && !options.json) context.stderr.write(skippedLines(skipped))
    if (options.json)
      printJson(context, {
        dryRun: options.dryRun ?? false,
        discarded: done,
        leftAlone: skipped.map(({ submission: { id, outboxId }, reason: why }) => ({ id, outboxId, reason: why })),
      })
    context.stderr.write(`${options.dryRun ? 'Would discard' : 'Discarded'} ${pluralize(done.length, 'record')}.\n`)
    if (options.dryRun && submissions.length > 0) return exit.done
    return skipped.length > 0 || context.signal.aborted ? exit.failed : exit.done
  })
}
