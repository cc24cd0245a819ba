import type { StoreConfig } from '../config.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import type { Pruned, PruneEnd } from '../ledger/prune.ts'
import { countPrunableSubmissions, type PrunableCount } from '../ledger/retention.ts'
import { type Databases, operatorOf } from '../operations/databases.ts'
import { pruneLedger } from '../operations/prune.ts'
import { pluralize, renderTable, terminalOf } from '../plainText.ts'
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, createProgress, exitCodes, printJson, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'delete records older than RETENTION_DAYS and payloads older than RETENTION_PAYLOAD_DAYS',
  options: [
    asOption,
    reasonOption,
    ['--dry-run', 'show what would be deleted, by state and age; change nothing'],
    ['--json', 'print JSON'],
  ],
  help: `A running daemon does the same each minute. Records that need attention stay, and so do those whose outcome is not written back
yet. Ids stay known, so that no row is sent again. You can interrupt it, and run it while daemons run. The exit code is 1 if it
did not finish, 3 if nothing is due.

Examples:
  outboxd prune --dry-run
  RETENTION_DAYS=30 outboxd prune --dry-run      what a shorter time would delete`,
  async action(context, options): Promise<number> {
    const problems = actorProblems(options)
    if (problems.length > 0) return usageError(context, problems)
    return withDatabases(context, async (databases, { retention }) => {
      const due = await countPrunableSubmissions(databases.ledger, databases.config.retention)
      const dryRun = options.dryRun ?? false
      const { pruned, end } =
        dryRun || due.length === 0
          ? nothingDone
          : await pruneAll(context, databases, { operator: operatorOf(databases, actorOf(context, options)), due })
      if (options.json)
        printJson(context, { dryRun, ...retentionJson(retention), due, ...pruned, isComplete: end === 'through' })
      else if (due.length > 0) context.stdout.write(tableOf(due, context))
      context.stderr.write(
        `${due.length === 0 ? nothingMessage(retention) : dryRun ? wouldMessage(due) : doneMessage(pruned, end)}\n`,
      )
      if (due.length === 0) return exitCodes.nothing
      return end === 'through' ? exitCodes.done : exitCodes.failed
    })
  },
})

const nothingDone: { pruned: Pruned; end: PruneEnd } = {
  pruned: { submissions: 0, emptied: 0, forgotten: 0 },
  end: 'through',
}

async function pruneAll(
  context: CommandContext,
  databases: Databases,
  { operator, due }: { operator: Operator; due: readonly PrunableCount[] },
) {
  let pruned = nothingDone.pruned
  const { submissions, toEmpty } = totalsOf(due)
  const tell = createProgress(
    context,
    (soFar: Pruned) => `Deleted ${soFar.submissions} of ${submissions}, emptied ${soFar.emptied} of ${toEmpty} ...`,
  )
  const end = await pruneLedger(databases, operator, {
    goOn: () => !context.signal.aborted,
    onProgress(soFar) {
      pruned = soFar
      tell(soFar)
    },
  })
  return { pruned, end }
}

function totalsOf(due: readonly PrunableCount[]) {
  const sum = (what: 'submissions' | 'toEmpty') => due.reduce((total, each) => total + each[what], 0)
  return { submissions: sum('submissions'), toEmpty: sum('toEmpty') }
}

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
  const { submissions, toEmpty } = totalsOf(due)
  return `Would delete ${pluralize(submissions, 'record')} and empty ${toEmpty}.`
}

function doneMessage({ submissions, emptied }: Pruned, end: PruneEnd): string {
  const done = `Deleted ${pluralize(submissions, 'record')}, emptied ${emptied}`
  if (end === 'begun') return `${done}, then was interrupted. Run it again for the rest, or leave it to the daemon.`
  if (end === 'elsewhere') return `${done}. A daemon or another command is pruning now: run it again.`
  return `${done}.`
}

function nothingMessage({ days, payloadDays }: StoreConfig['retention']): string {
  if (days === null && payloadDays === null)
    return 'RETENTION_DAYS and RETENTION_PAYLOAD_DAYS are 0, so the ledger keeps everything.'
  return 'Nothing is due.'
}

const retentionJson = ({ days, payloadDays }: StoreConfig['retention']) => ({
  retentionDays: days,
  retentionPayloadDays: payloadDays,
})
