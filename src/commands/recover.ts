import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { v7 as uuidv7 } from 'uuid'
import { actorOf } from '../cli/actor.ts'
import { confirm } from '../cli/confirm.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { printJson } from '../cli/printJson.ts'
import { escapeControl, pluralize } from '../cli/table.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { readStoreConfig } from '../config.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapOutboxRecord.ts'
import type { CapturedRecord } from '../model.ts'
import { batches } from '../operations/bulkChange.ts'
import type { TakenRow } from '../outbox/takenRows.ts'
import type { LedgerGap } from '../store/ledgerGap.ts'
import type { OperatorChanges } from '../store/operatorChanges.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { actorProblems, byOption, reasonOption } from './actorOptions.ts'

export interface RecoverOptions {
  as?: string
  by?: string
  reason?: string
  dryRun?: boolean
  yes?: boolean
  json?: boolean
}

const batchSize = 100
const rowsShown = 10

export function describeRecover(command: Command): Command {
  return command
    .description(
      'capture rows again that say they were taken and that the ledger has lost, as after a restore or a failover',
    )
    .option('--as <state>', 'uncertain: a person decides about each; new: we send each')
    .addOption(byOption)
    .addOption(reasonOption)
    .option('--dry-run', 'show which rows; change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Compares the whole outbox with the ledger. Rows that are completed or discarded are left as they are. A row that is marked at
its end alone looks new until then, so nothing can be found of it: after a restore it is sent again by itself.
--as uncertain is the safe one: settle each with resolve. --as new sends twice what had arrived.
Safe to run twice, and beside daemons.

Examples:
  outboxd recover --dry-run
  outboxd recover --as uncertain`,
    )
}

/** Takes in what the ledger lost. @returns 3 where there is nothing, 4 where nobody confirmed, 1 where it was interrupted */
export async function recover(context: CommandContext, options: RecoverOptions): Promise<number> {
  const { as } = options
  const given = { as: options.by, reason: options.reason }
  const problems = actorProblems(given, '--by')
  if (problems.length > 0) return usageError(context, problems)
  if (as !== undefined && as !== 'uncertain' && as !== 'new')
    return usageError(context, ['--as takes uncertain or new'])
  if (as === undefined && !options.dryRun) return usageError(context, ['give --as uncertain or --as new, or --dry-run'])
  const mappings = loadMappings(readStoreConfig(context.env).mappingsDir)
  return withOperatorStore(context, async (store) => {
    const gap = await store.findGap(() => !context.signal.aborted)
    if (options.json) printJson(context, jsonOf(gap))
    if (gap.rows.length === 0) {
      context.stderr.write(`${nothingMessage(gap)}\n`)
      return exit.nothing
    }
    if (!options.json) context.stdout.write(preview(gap))
    if (options.dryRun || as === undefined) return exit.done
    if (!options.yes) {
      const risk = as === 'new' ? ' What has arrived before arrives twice.' : ''
      const answer = await confirm(context, `Take ${pluralize(gap.rows.length, 'row')} in as ${as}?${risk}`)
      if (answer === 'no-terminal')
        context.stderr.write('outboxd: this is no terminal, so nobody could confirm: give --yes\n')
      if (answer !== 'yes') return exit.unconfirmed
    }
    const changes = store.actingAs(actorOf(context, given))
    const taken = await takeIn({ context, store, changes, mappings }, gap.rows, as)
    context.stderr.write(`Took ${pluralize(taken, 'row')} in as ${as}.\n`)
    await store.tellGap(await store.findGap(() => !context.signal.aborted))
    return context.signal.aborted ? exit.failed : exit.done
  })
}

interface Parts {
  context: CommandContext
  store: OperatorStore
  changes: OperatorChanges
  mappings: Mappings
}

async function takeIn(
  { context, store, changes, mappings }: Parts,
  rows: readonly TakenRow[],
  as: 'uncertain' | 'new',
): Promise<number> {
  let taken = 0
  for (const batch of batches(rows, batchSize)) {
    if (context.signal.aborted) break
    const records: CapturedRecord[] = []
    for (const row of batch) {
      const record = await readKept(store, mappings, row, as)
      if (record !== null) records.push(record)
    }
    await changes.recover(records)
    taken += records.length
  }
  return taken
}

/** The row as the ledger would have kept it; null where it is gone. What does not map cannot have been sent: it is rejected. */
async function readKept(
  store: OperatorStore,
  mappings: Mappings,
  { outboxId, stateText, transactionId }: TakenRow,
  as: 'uncertain' | 'new',
): Promise<CapturedRecord | null> {
  const row = await store.outbox.readRecord(outboxId)
  if (row === null) return null
  const id = uuidv7()
  const { unreadable: _, ...record } = row
  const kept = { ...record, id, idempotencyKey: randomUUID() }
  const mapped = mapOutboxRecord(mappings, row, id)
  if (mapped.kind === 'refused')
    return { ...kept, resource: mapped.resource, body: null, tracked: true, sendsOwnId: false, error: mapped.reason }
  const { resource, body, amounts, tracked, sendsOwnId } = mapped
  const named = transactionId === null ? '' : ` as transaction ${transactionId}`
  const doubt =
    as === 'new' ? null : `the ledger had lost this row, which said ${stateText}${named}: it may have arrived`
  return { ...kept, resource, body, amounts, tracked, sendsOwnId, error: null, doubt }
}

function nothingMessage({ canTell, isCut }: LedgerGap): string {
  if (!canTell)
    return 'The rows of this outbox say only at their end that they were taken, so nobody can tell which the ledger has lost.'
  return isCut ? 'Interrupted: nothing was found so far.' : 'The ledger knows every row that says it was taken.'
}

function preview({ rows, isCut }: LedgerGap): string {
  const byState = [...Map.groupBy(rows, (row) => row.stateText)].map(([value, all]) => `${all.length} say ${value}`)
  const times = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const when = times.length === 0 ? '' : `, recorded from ${times[0]} to ${times.at(-1)}`
  const lines = [
    `${pluralize(rows.length, 'row')}${isCut ? ' or more' : ''} that the ledger does not know (${byState.join(', ')})${when}:`,
    ...rows
      .slice(0, rowsShown)
      .map(({ outboxId, stateText: value, createdAt, transactionId }) =>
        `  ${outboxId}  ${value}  ${createdAt ?? ''}  ${transactionId ?? ''}`.trimEnd(),
      ),
    ...(rows.length > rowsShown ? [`  ... and ${rows.length - rowsShown} more: --json shows all`] : []),
  ]
  return lines.map((line) => `${escapeControl(line)}\n`).join('')
}

const jsonOf = ({ canTell, rows, isCut }: LedgerGap) => ({
  canTell,
  isComplete: !isCut,
  rows: rows.map(({ outboxId, stateText: state, createdAt, transactionId }) => ({
    outboxId,
    state,
    createdAt,
    transactionId,
  })),
})
