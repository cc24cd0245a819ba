import { readDatabaseConfig } from '../config.ts'
import { type MigrationCost, readMigrationPlan, type TableCost, type TableSize } from '../ledger/migrations.ts'
import type { QueueVersions } from '../ledger/queue.ts'
import { pluralize } from '../plainText.ts'
import { formatDuration } from '../time.ts'
import { type CommandContext, exitCodes, printJson } from './terminal/context.ts'

export async function printMigrationPlan(context: CommandContext, { json }: { json: boolean }): Promise<number> {
  const { missing, sizes, queue } = await readMigrationPlan(readDatabaseConfig(context.env).stateDatabaseUrl)
  const planned = missing.map((cost) => estimateMigration(cost, sizes))
  const aboutMs = planned.reduce((ms, each) => ms + each.aboutMs, 0)
  if (json) printJson(context, { missing: planned, aboutMs, pgboss: queue })
  else for (const each of planned) context.stdout.write(`${describe(each).join('\n')}\n`)
  for (const line of summary(planned, queue)) context.stderr.write(`${line}\n`)
  return exitCodes.done
}

function describe({ name, adds, drops, tables, aboutMs }: PlannedMigration): string[] {
  return [
    `${name}: ${about(aboutMs)}`,
    ...(adds.length > 0 ? [`  creates ${adds.join(', ')}`] : []),
    ...(drops.length > 0 ? [`  drops ${drops.join(', ')}`] : []),
    ...tables.map((table) => `  ${tableMessage(table)}`),
  ]
}

const meanwhile = {
  all: 'blocks reads and writes',
  writes: 'blocks writes',
  rows: 'blocks only the rows that it changes',
  nobody: 'blocks nothing',
}

/** What each lock blocks while a migration holds it. */
const stopsBy = {
  AccessExclusiveLock: 'all',
  ExclusiveLock: 'writes',
  ShareRowExclusiveLock: 'writes',
  ShareLock: 'writes',
  RowExclusiveLock: 'rows',
  RowShareLock: 'rows',
  ShareUpdateExclusiveLock: 'nobody',
  AccessShareLock: 'nobody',
} as const satisfies Record<TableCost['lock'], keyof typeof meanwhile>

function tableMessage({ table, rows, bytes, lock, stops, ...does }: PlannedTable): string {
  const work = [
    ...(does.reads > 0 ? [`reads the table ${does.reads === 1 ? 'once' : `${does.reads} times`}`] : []),
    ...(does.indexes > 0 ? [`builds ${does.indexes === 1 ? 'an index' : `${does.indexes} indexes`}`] : []),
    ...(does.isRewritten ? ['rewrites the table'] : []),
  ]
  const size = `${pluralize(rows, 'row')}, ${Math.ceil(bytes / 1e6)} MB`
  return `${table} (${size}), ${lock}: ${[meanwhile[stops], ...(work.length > 0 ? [work.join(', ')] : [])].join('; ')}`
}

function summary(planned: readonly PlannedMigration[], queue: QueueVersions): string[] {
  const [longest] = planned.toSorted((a, b) => b.aboutMs - a.aboutMs)
  const ledger =
    longest === undefined
      ? 'The schema outboxd is up to date.'
      : `${pluralize(planned.length, 'migration')}, each in its own transaction. The longest is ${longest.name}: ${about(longest.aboutMs)}.`
  return [ledger, queueMessage(queue), ...(longest === undefined ? [] : [caveat])]
}

const caveat =
  'Times are estimated from table sizes, for two idle cores and an SSD. A migration waits at most 10 s for each lock; other sessions queue behind it.'

function queueMessage({ installed, needed }: QueueVersions): string {
  if (installed === needed) return 'The schema pgboss is up to date.'
  return installed === null
    ? 'The schema pgboss will be created.'
    : `pg-boss itself will upgrade the schema pgboss from version ${installed} to ${needed}; this plan does not know its locks.`
}

const about = (ms: number) => (ms < 500 ? 'an instant' : `about ${formatDuration(ms)}`)

interface PlannedTable extends TableCost, TableSize {
  stops: keyof typeof meanwhile
}

interface PlannedMigration extends Pick<MigrationCost, 'name' | 'adds' | 'drops'> {
  tables: PlannedTable[]
  aboutMs: number
}

/** Measured by tools/bench/migrate.ts: a million submissions, two cores, SSD (docs/run/operations.md, "Upgrading"). */
const readMsPerMb = 1
const indexMsPerRow = 0.0005
const rewriteMsPerMb = 10

/** A missing table counts as empty, because an earlier migration creates it. */
export function estimateMigration(
  { name, adds, drops, tables }: MigrationCost,
  sizes: ReadonlyMap<string, TableSize>,
): PlannedMigration {
  const planned = tables.flatMap((cost): PlannedTable[] => {
    const size = sizes.get(cost.table)
    return size === undefined ? [] : [{ ...cost, ...size, stops: stopsBy[cost.lock] }]
  })
  return { name, adds, drops, tables: planned, aboutMs: planned.reduce((ms, table) => ms + estimateMs(table), 0) }
}

function estimateMs({ reads, indexes, isRewritten, rows, bytes }: TableCost & TableSize): number {
  const megabytes = bytes / 1e6
  return (
    reads * megabytes * readMsPerMb + indexes * rows * indexMsPerRow + (isRewritten ? megabytes * rewriteMsPerMb : 0)
  )
}
