import { readStoreConfig } from '../config.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import type { Skipped } from '../operations/bulkChange.ts'
import { operatorOf } from '../operations/databases.ts'
import { referenceHelp } from '../operations/references.ts'
import { replayable, replayChange, replaySubmissions, tryReplay } from '../operations/replay.ts'
import { pluralize } from '../plainText.ts'
import { filterOptions, preview, selectForChange, selectionProblems, skippedLines } from './selection.ts'
import { actorOf, actorProblems, asOption, reasonOption } from './terminal/actor.ts'
import type { CommandModule, OptionRow, OptionsOf } from './terminal/command.ts'
import { type CommandContext, exit, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/withDatabases.ts'

const options = [
  ...filterOptions(replayable, 'the most to change, longest in their state first'),
  ['--refresh', 'read payload, type and key from the outbox row anew'],
  ['--even-if-arrived', 'also those that may have arrived: if one did, it may be at the service twice'],
  ['--new-key', 'what may have arrived gets a new idempotency key, too: no service can then know it again'],
  asOption,
  reasonOption,
  ['--dry-run', 'show what would be replayed and what still does not map; change nothing'],
  ['--yes', 'do not ask'],
  ['--json', 'what was replayed and what was not, as JSON'],
] as const satisfies readonly OptionRow[]

export type ReplayOptions = OptionsOf<typeof options>

export const command: CommandModule = {
  action: replay,
  description: 'send failed and rejected records again, mapped anew by the mapping files as they are now',
  arguments: [['[ids...]', referenceHelp]],
  options,
  help: `Without ids and filters: all failed and rejected ones. More than one are shown first, and it asks.
Each gets a new idempotency key and its retries back; the log keeps what was sent and answered before.
Those that may have arrived (outboxd list notes them) are left alone unless they are named, and keep their key: a service
that recognises it then has the record once.
What still does not map stays as it is, and the exit code is 1.

Examples:
  outboxd replay outbox:4711 --refresh --reason "amount corrected, ticket 231"
  outboxd replay --state failed --since 2h --dry-run   after an outage: first look
  outboxd replay --state failed --since 2h             then do it
  outboxd replay --state rejected --type order --yes   the mapping was mended`,
}

/** Sends failed and rejected submissions again. @returns 1 where some could not be replayed, 3 where there are none */
export async function replay(context: CommandContext, ids: readonly string[], options: ReplayOptions): Promise<number> {
  const { refresh = false, evenIfArrived = false, newKey = false } = options
  const terms = { refresh, evenIfArrived, newKey }
  const change = replayChange(terms)
  const problems = [...selectionProblems(change, ids, options), ...actorProblems(options)]
  if (problems.length > 0) return usageError(context, problems)
  const mappings = loadMappings(readStoreConfig(context.env).mappingsDir)
  return withDatabases(context, async (databases) => {
    const chosen = await selectForChange(context, databases, change, { ids, options })
    if (chosen.kind === 'over') return chosen.exitCode
    const { submissions } = chosen
    const parts = { databases, mappings, operator: operatorOf(databases, actorOf(context, options)) }
    const run = { signal: context.signal, onProgress: () => {} }
    const carryOut = options.dryRun ? tryReplay : replaySubmissions
    const carriedOut = await carryOut(parts, submissions, terms, run)
    const { done } = carriedOut
    const skipped = [...chosen.skipped, ...carriedOut.skipped]
    if (options.dryRun && !options.json) {
      const would = new Set(done)
      context.stdout.write(
        preview(
          change,
          submissions.filter(({ id }) => would.has(id)),
          skipped,
          submissions.length,
        ),
      )
    } else if (!options.json) context.stderr.write(skippedLines(skipped))
    return conclude(context, { done, skipped, chosen: submissions.length }, options)
  })
}

function conclude(
  context: CommandContext,
  { done, skipped, chosen }: { done: string[]; skipped: Skipped[]; chosen: number },
  { dryRun, json }: ReplayOptions,
): number {
  const unreached = chosen - done.length - skipped.length
  if (json)
    printJson(context, {
      dryRun: dryRun ?? false,
      replayed: done,
      leftAlone: skipped.map(({ submission: { id, outboxId }, reason }) => ({ id, outboxId, reason })),
    })
  const did = dryRun ? 'Would replay' : 'Replayed'
  const left = skipped.length > 0 ? `; ${pluralize(skipped.length, 'record')} left alone` : ''
  context.stderr.write(`${did} ${pluralize(done.length, 'record')}${left}.\n`)
  if (unreached > 0 && context.signal.aborted) context.stderr.write('Interrupted: the rest was not touched.\n')
  if (dryRun && chosen > 0) return exit.done
  return skipped.length > 0 || context.signal.aborted ? exit.failed : exit.done
}
