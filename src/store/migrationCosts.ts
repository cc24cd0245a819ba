import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { migrationsDir } from './migrateStores.ts'

/** Locks that a migration takes on a table, as pg_locks names them, the strongest first. */
const locks = [
  'AccessExclusiveLock',
  'ExclusiveLock',
  'ShareRowExclusiveLock',
  'ShareLock',
  'ShareUpdateExclusiveLock',
  'RowExclusiveLock',
  'RowShareLock',
  'AccessShareLock',
] as const

const tableCostSchema = z.strictObject({
  table: z.string(),
  /** The strongest that it takes; held until the migration's end. */
  lock: z.enum(locks),
  /** How often it reads all of the table. */
  reads: z.int(),
  /** How many indexes it builds on it. */
  indexes: z.int(),
  isRewritten: z.boolean(),
})
const migrationCostSchema = z.strictObject({
  name: z.string(),
  /** What is new in our schema, such as `index submission_done of submission`; of a new table the table alone. */
  adds: z.array(z.string()),
  drops: z.array(z.string()),
  /** Tables that are there before it. */
  tables: z.array(tableCostSchema),
})

export type TableCost = z.infer<typeof tableCostSchema>
/** What a migration does, as it was measured while it ran (test/store/migrationCosts.test.ts). */
export type MigrationCost = z.infer<typeof migrationCostSchema>

/** The costs of all our migrations, the oldest first. */
export async function readMigrationCosts(): Promise<MigrationCost[]> {
  const text = await readFile(join(migrationsDir, 'costs.json'), 'utf8')
  return z.array(migrationCostSchema).parse(JSON.parse(text))
}
