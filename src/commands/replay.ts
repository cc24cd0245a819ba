import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { describeFilters } from '../cli/filters.ts'
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
import { readStoreConfig } from '../config.ts'
import type { Replay, ReplayableSubmission } from '../ledger/operator/replaySubmissions.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { differInTime } from '../ledger/sameRow.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapOutboxRecord.ts'
import type { OutboxRecord, State } from '../model.ts'
import type { OperatorStore } from '../store/operatorStore.ts'

export interface ReplayOptions extends BulkOptions {
  refresh?: boolean
  evenIfArrived?: boolean
  newKey?: boolean
}

const replayable: readonly State[] = ['failed', 'rejected']

const replayChange = (options: ReplayOptions): BulkChange => ({
  verb: 'replay',
  allowedStates: replayable,
  defaultStates: replayable,
  whyNotAllowed(state) {
    if (state === 'uncertain')
      return 'it may have arrived, and a replay could send it twice: settle each with outboxd resolve'
    if (state === 'completed') return 'it has arrived'
    if (state === 'discarded') return 'it was given up for good'
    return 'it is on its way'
  },
  whySpared: options.evenIfArrived
    ? null
    : 'may have arrived: look at the service first. A replay by name, or --even-if-arrived, sends it again',
  riskOf: (submissions) => riskMessage(submissions, options),
  asksAlways: () => false,
})

/** Payloads can be large: so many are in memory at once. */
const batchSize = 100

export function describeReplay(command: Command): Command {
  return describeFilters(
    command
      .description('send failed and rejected records again, mapped anew by the mapping files as they are now')
      .argument('[ids...]', referenceHelp),
    replayable,
    'at most so many, longest in their state first',
  )
    .option(
      '--refresh',
      'read the payload from the outbox row anew; type and key only where they could not be read before',
    )
    .option('--even-if-arrived', 'also those that may have arrived: if one did, it may be at the service twice')
    .option('--new-key', 'what may have arrived gets a new idempotency key, too: no service can then know it again')
    .option('--dry-run', 'show what would be replayed and what still does not map; change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'what was replayed and what was not, as JSON')
    .addHelpText(
      'after',
      `
Without ids and filters: all failed and rejected ones. More than one are shown first, and it asks.
Each gets a new idempotency key and its retries back; the log keeps what was sent and answered before.
Those that may have arrived (outboxd list notes them) are left alone unless they are named, and keep their key: a service
that recognises it then has the record once.
What still does not map stays as it is, and the exit code is 1.

Examples:
  outboxd replay outbox:4711 --refresh                 the row was corrected
  outboxd replay --state failed --since 2h --dry-run   after an outage: first look
  outboxd replay --state failed --since 2h             then do it
  outboxd replay --state rejected --type order --yes   the mapping was mended`,
    )
}

/** Sends failed and rejected submissions again. @returns 1 where some could not be replayed, 3 where there are none */
export async function replay(context: CommandContext, ids: readonly string[], options: ReplayOptions): Promise<number> {
  const change = replayChange(options)
  const problems = selectionProblems(change, ids, options)
  if (problems.length > 0) return usageError(context, problems)
  const mappings = loadMappings(readStoreConfig(context.env).mappingsDir)
  return withOperatorStore(context, async (store) => {
    const chosen = await selectForChange(context, store, change, { ids, options })
    if (chosen.kind === 'over') return chosen.exitCode
    const { submissions } = chosen
    const done: string[] = []
    const skipped = [...chosen.skipped]
    const refresh = options.refresh ? store.outbox.readRecord : null
    for (const batch of batches(submissions, batchSize)) {
      if (context.signal.aborted) break
      const prepared = await prepare(store, mappings, batch, refresh)
      const ready = new Set(prepared.replays.map(({ id }) => id))
      const replayed = options.dryRun ? ready : new Set(await store.replay(prepared.replays, options.newKey ?? false))
      done.push(...replayed)
      skipped.push(...prepared.skipped, ...overtaken(batch, ready, replayed))
    }
    if (options.dryRun && !options.json) {
      const would = new Set(done)
      context.stdout.write(
        preview(
          change,
          submissions.filter(({ id }) => would.has(id)),
          skipped,
        ),
      )
    } else if (!options.json) context.stderr.write(skippedLines(skipped))
    return conclude(context, { done, skipped, chosen: submissions.length }, options)
  })
}

/** What is risked by sending again what may have arrived; empty where none of them may. */
function riskMessage(submissions: readonly ListedSubmission[], { newKey }: ReplayOptions): string {
  const count = submissions.filter(({ mayHaveArrived }) => mayHaveArrived).length
  if (count === 0) return ''
  const key = newKey
    ? 'under a new idempotency key, so that a service with the record has it twice'
    : 'once where the service recognises the idempotency key that is kept, and twice where it does not'
  return `${pluralize(count, 'record')} may have arrived before: the service then has it ${key}.\n`
}

interface Prepared {
  replays: Replay[]
  skipped: Skipped[]
}

/** Maps a batch anew. @param refresh reads an outbox row; null: the stored payloads are mapped */
async function prepare(
  store: OperatorStore,
  mappings: Mappings,
  batch: readonly ListedSubmission[],
  refresh: OperatorStore['outbox']['readRecord'] | null,
): Promise<Prepared> {
  const replays: Replay[] = []
  const found = await store.readReplayable(batch)
  const skipped = moved(batch, found)
  for (const submission of found) {
    const read = await readPayload(submission, refresh)
    const { id, revision } = submission
    const { type, key } = read
    const mapped = mapOutboxRecord(mappings, read, id)
    if (mapped.kind === 'refused') {
      skipped.push({ submission, reason: `still cannot be sent: ${mapped.reason}` })
    } else if (read.payload !== null) {
      const { resource, body, tracked, sendsOwnId } = mapped
      const { payload, stamp } = read
      replays.push({ id, revision, type, key, resource, payload, body, tracked, sendsOwnId, stamp })
    }
  }
  return { replays, skipped }
}

async function readPayload(
  { outboxId, type, key, payload, stamp, isServed }: ReplayableSubmission,
  refresh: OperatorStore['outbox']['readRecord'] | null,
): Promise<Pick<OutboxRecord, 'type' | 'key' | 'payload' | 'unreadable' | 'stamp'>> {
  if (refresh === null) {
    const unreadable = 'its payload could not be read when it was captured; --refresh reads it anew'
    return { type, key, payload, unreadable, stamp: null }
  }
  const none = (unreadable: string) => ({ type, key, payload: null, unreadable, stamp: null })
  const record = isServed ? await refresh(outboxId) : null
  if (record === null) return none(`the row ${outboxId} is no longer in the outbox`)
  if (isAnother(stamp, record.stamp)) return none(`the row ${outboxId} of the outbox is another one now`)
  const { unreadable } = record
  const known = wasUnread({ type, stamp }) ? record : { type, key }
  return { type: known.type, key: known.key, payload: record.payload, unreadable, stamp: record.stamp }
}

/** Nothing of it could be read when it was captured. */
const wasUnread = ({ type, stamp }: Pick<ReplayableSubmission, 'type' | 'stamp'>) => type === '' && stamp === null

/** By when it was recorded alone: that its content is another is what it is read anew for. */
const isAnother = (known: string | null, read: string | null) =>
  known !== null && read !== null && differInTime(known, read)

/** What took a step between being chosen and being read. */
function moved(batch: readonly ListedSubmission[], found: readonly ReplayableSubmission[]): Skipped[] {
  const ids = new Set(found.map(({ id }) => id))
  return batch.filter(({ id }) => !ids.has(id)).map((submission) => ({ submission, reason: changedMeanwhile }))
}

/** What took a step between being read and being written. */
function overtaken(batch: readonly ListedSubmission[], ready: Set<string>, replayed: Set<string>): Skipped[] {
  return batch
    .filter(({ id }) => ready.has(id) && !replayed.has(id))
    .map((submission) => ({ submission, reason: changedMeanwhile }))
}

const changedMeanwhile = 'changed meanwhile and was left alone'

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
