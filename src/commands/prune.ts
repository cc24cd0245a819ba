import { logOperatorAct, type Operator } from '../ledger/operator/operator.ts'
import {
  countPrunableSubmissions,
  type PrunableCount,
  type PrunedCounts,
  type Retention,
  toRetention,
} from '../ledger/retention.ts'
import type { Settings } from '../ledger/settings.ts'
import { type Databases, readLedgerSettings, withOutbox } from '../operations/databases.ts'
import { assertOutboxFileIsLedgers } from '../operations/ledgerFiles.ts'
import { type PruneRound, type PruneRoundResult, runPruneRound } from '../outbox/prune.ts'
import { pluralize, renderTable, terminalOf } from '../plainText.ts'
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, createProgressPrinter, exitCodes, printJson } from './terminal/context.ts'
import { actorNameOption, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'delete records older than RETENTION_DAYS and payloads older than RETENTION_PAYLOAD_DAYS',
  options: [
    actorNameOption,
    reasonOption,
    ['--dry-run', 'show what would be deleted, by state and age'],
    ['--json', 'print JSON'],
  ],
  help: `A running daemon prunes every five minutes. Records that need attention stay, and so do those whose outcome is not written back
yet, or whose rows still wait. The times are those of the daemons, whatever this shell says. You can interrupt the command,
and run it while daemons run. The exit code is 1 if it did not finish, 3 if no record is old enough.

Examples:
  outboxd prune --dry-run`,
  async action(context, options): Promise<number> {
    const { dryRun = false } = options
    return withOperator(context, options, [], async (databases, operator) => {
      const settings = await readLedgerSettings(databases)
      await assertOutboxFileIsLedgers(databases)
      const retention = toRetention(settings)
      const due = await countPrunableSubmissions(databases.ledger, retention)
      const isDone = dryRun || due.length === 0
      const { pruned, end } = isDone
        ? { pruned: nothing, end: 'through' as const }
        : await pruneLedger(databases, operator, { context, settings, due })
      const { days: retentionDays, payloadDays: retentionPayloadDays } = retention
      const isComplete = end === 'through'
      if (options.json) printJson(context, { dryRun, retentionDays, retentionPayloadDays, due, ...pruned, isComplete })
      else if (due.length > 0) context.stdout.write(tableOf(due, context))
      if (due.length === 0) {
        context.stderr.write(`${nothingMessage(retention)}\n`)
        return exitCodes.nothing
      }
      context.stderr.write(`${dryRun ? wouldMessage(due) : doneMessage(pruned, end)}\n`)
      return isComplete ? exitCodes.done : exitCodes.failed
    })
  },
})

const nothing: PrunedCounts = { submissions: 0, emptied: 0 }

/** Logs the act before it deletes anything, so that a killed command leaves it, too. */
async function pruneLedger(
  databases: Databases,
  { ledger, actor }: Operator,
  { context, settings, due }: { context: CommandContext; settings: Settings; due: readonly PrunableCount[] },
): Promise<{ pruned: PrunedCounts; end: PruneRoundResult }> {
  const retention = toRetention(settings)
  const showProgress = createProgressPrinter(
    context,
    ({ submissions, emptied }: PrunedCounts) => `Deleted ${submissions}, emptied ${emptied} so far …`,
  )
  await logOperatorAct(ledger, actor, 'prune', { ...retention })
  let pruned = nothing
  const round: PruneRound = {
    ...{ settings, turn: 'wait' },
    goOn: () => !context.signal.aborted,
    onProgress(soFar) {
      pruned = soFar
      showProgress(soFar)
    },
  }
  const end = await withOutbox(databases, (outbox) => runPruneRound(outbox, round))
  // Records that became old enough during the round do not count as left.
  const isLess =
    (pruned.submissions < sumOf(due, 'submissions') || pruned.emptied < sumOf(due, 'toEmpty')) &&
    (await countPrunableSubmissions(ledger, retention)).length > 0
  return { end: end === 'through' && isLess ? 'begun' : end, pruned }
}

const sumOf = (due: readonly PrunableCount[], what: 'submissions' | 'toEmpty') =>
  due.reduce((sum, each) => sum + each[what], 0)

function tableOf(due: readonly PrunableCount[], context: CommandContext): string {
  const rows = due.map(({ state, ageDays, submissions, toEmpty }) => [
    state,
    `${ageDays} d`,
    String(submissions),
    String(toEmpty),
  ])
  return renderTable(['state', 'ended ago', 'to delete', 'to empty'], rows, terminalOf(context.stdout))
}

function wouldMessage(due: readonly PrunableCount[]): string {
  return `Would delete ${pluralize(sumOf(due, 'submissions'), 'record')} and empty ${sumOf(due, 'toEmpty')} (delete the contents only).`
}

function doneMessage({ submissions, emptied }: PrunedCounts, end: PruneRoundResult): string {
  const rest =
    end === 'through'
      ? ''
      : ' The rest is left, because the command was interrupted, another instance prunes, sessions have locked records, or rows still wait: run the command again.'
  return `Deleted ${pluralize(submissions, 'record')}, emptied ${emptied}.${rest}`
}

function nothingMessage({ days, payloadDays }: Retention): string {
  if (days === null && payloadDays === null)
    return 'RETENTION_DAYS and RETENTION_PAYLOAD_DAYS are 0, so the ledger keeps everything.'
  return 'No record is old enough to be pruned.'
}
