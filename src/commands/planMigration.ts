import type { MigrationCost, TableCost, TableSize } from '../ledger/migrations.ts'

/** Whom a lock stops for as long as it is held. */
export type Stops = 'all' | 'writes' | 'rows' | 'nobody'

/** A table that a migration locks or reads. */
export interface PlannedTable extends TableCost, TableSize {
  stops: Stops
}

export interface PlannedMigration {
  name: string
  adds: string[]
  drops: string[]
  tables: PlannedTable[]
  /** From its first lock to its end, by the sizes of the tables. */
  aboutMs: number
}

/** As measured by tools/bench/migrate.ts with a million submissions on two cores and an SSD (docs/operations.md, "Upgrading"). */
const readMsPerMb = 1
const indexMsPerRow = 0.0005
const rewriteMsPerMb = 10

/** What a migration does to tables of these sizes. What is not there yet, a migration before it makes, and nobody uses. Pure. */
export function planMigration(
  { name, adds, drops, tables }: MigrationCost,
  sizes: ReadonlyMap<string, TableSize>,
): PlannedMigration {
  const planned = tables.flatMap((cost): PlannedTable[] => {
    const size = sizes.get(cost.table)
    return size === undefined ? [] : [{ ...cost, ...size, stops: stopsOf(cost.lock) }]
  })
  return { name, adds, drops, tables: planned, aboutMs: planned.reduce((ms, table) => ms + estimateMs(table), 0) }
}

function estimateMs({ reads, indexes, isRewritten, rows, bytes }: TableCost & TableSize): number {
  const megabytes = bytes / 1e6
  return (
    reads * megabytes * readMsPerMb + indexes * rows * indexMsPerRow + (isRewritten ? megabytes * rewriteMsPerMb : 0)
  )
}

function stopsOf(lock: TableCost['lock']): Stops {
  switch (lock) {
    case 'AccessExclusiveLock':
      return 'all'
    case 'ExclusiveLock':
    case 'ShareRowExclusiveLock':
    case 'ShareLock':
      return 'writes'
    case 'RowExclusiveLock':
    case 'RowShareLock':
      return 'rows'
    case 'ShareUpdateExclusiveLock':
    case 'AccessShareLock':
      return 'nobody'
    default:
      return lock satisfies never
  }
}
