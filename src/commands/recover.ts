import type { Command } from 'commander'
import { actorOf } from '../cli/actor.ts'
import { confirm } from '../cli/confirm.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { printJson } from '../cli/printJson.ts'
import { escapeControl, pluralize } from '../cli/table.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { readStoreConfig } from '../config.ts'
import type { RecoveredAs } from '../ledger/operator/recoverHistory.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { findLoss, type Loss, lossJson, lossMessages, takeInRows } from '../operations/recover.ts'
import type { OperatorChanges } from '../store/operatorChanges.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { actorProblems, byOption, reasonOption } from './actorOptions.ts'

export interface RecoverOptions {
  as?: string
  by?: string
  reason?: string
  waiting?: boolean
  dryRun?: boolean
  yes?: boolean
  json?: boolean
}

export function describeRecover(command: Command): Command {
  return command
    .description('after the ledger’s database was restored or failed over: take what may have been sent, and go on')
    .option('--as <state>', 'uncertain: a person decides about each; new: we send each')
    .option('--waiting', 'also the rows that wait in the outbox may have been sent: it was restored, too')
    .addOption(byOption)
    .addOption(reasonOption)
    .option('--dry-run', 'show what it would be; change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Where the ledger went back in time, daemons have noticed and send nothing. This shows what they noticed and which records may have
been sent since: what the ledger has as queued, rows that wait in an outbox which went back with it, and rows that say they
were taken and that the ledger does not know. Once these are taken in, sending goes on.
--as uncertain is the safe one: settle each with resolve, or many with resolve --file. --as new sends twice what had arrived, unless the
service recognises the idempotency key; what the ledger knew keeps its own.
Where the history is as it was, it compares the whole outbox with the ledger and takes in what that has lost.
Safe to run twice, and beside daemons.

Examples:
  outboxd recover --dry-run
  outboxd recover --as uncertain`,
    )
}

/** Takes in what may have been sent. @returns 3 where there is nothing, 4 where nobody confirmed, 1 where it was interrupted */
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
    const loss = await findLoss(store, options.waiting ?? false, () => !context.signal.aborted)
    if (options.json) printJson(context, lossJson(loss))
    const messages = lossMessages(loss).map((line) => `${escapeControl(line)}\n`)
    if (loss.history === null && loss.gap.rows.length === 0) {
      context.stderr.write(messages.join(''))
      return exit.nothing
    }
    if (!options.json) context.stdout.write(messages.join(''))
    if (options.dryRun || as === undefined) return exit.done
    if (loss.history !== null && loss.gap.isCut) {
      context.stderr.write(
        'outboxd: interrupted, or there is more than one run compares: take it in by another, before sending goes on\n',
      )
      if (context.signal.aborted) return exit.failed
    }
    if (!options.yes) {
      const answer = await confirm(context, question(loss, as))
      if (answer === 'no-terminal')
        context.stderr.write('outboxd: this is no terminal, so nobody could confirm: give --yes\n')
      if (answer !== 'yes') return exit.unconfirmed
    }
    return takeIn({ context, store, changes: store.actingAs(actorOf(context, given)), mappings }, loss, as)
  })
}

function question({ gap, history }: Loss, as: RecoveredAs): string {
  const risk = as === 'new' ? ' What has arrived before arrives twice.' : ''
  return history === null
    ? `Take ${pluralize(gap.rows.length, 'row')} in as ${as}?${risk}`
    : `Take all of it as ${as}, and go on?${risk}`
}

interface Parts {
  context: CommandContext
  store: OperatorStore
  changes: OperatorChanges
  mappings: Mappings
}

async function takeIn({ context, store, changes, mappings }: Parts, loss: Loss, as: RecoveredAs): Promise<number> {
  const goOn = () => !context.signal.aborted
  const { gap, history } = loss
  const rows = [...gap.rows, ...(as === 'uncertain' ? (history?.undatedRows ?? []) : [])]
  const taken = await takeInRows({ outbox: store.outbox, changes, mappings, goOn }, rows, as)
  if (rows.length > 0) context.stderr.write(`Took ${pluralize(taken, 'row')} in as ${as}.\n`)
  await store.tellGap(await store.findGap(goOn))
  if (!goOn()) return exit.failed
  if (history === null) return exit.done
  if (gap.isCut) return exit.failed
  const recovered = await changes.recoverHistory({
    as,
    seenAtMs: history.found.atMs,
    isOutboxInDoubt: history.isOutboxInDoubt,
  })
  if (recovered === null) {
    context.stderr.write('What was found has changed meanwhile: look again.\n')
    return exit.failed
  }
  context.stderr.write(
    `Took ${pluralize(recovered.queued, 'record')} that ${recovered.queued === 1 ? 'was' : 'were'} queued as ${as}. Sending goes on.\n`,
  )
  return exit.done
}
