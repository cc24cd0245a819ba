import type { StoreConfig } from '../config.ts'
import { assertMigrated } from '../ledger/migrations.ts'
import { type RoleKind, readLedgerGrants, readRoleStatements } from '../ledger/operator/grants.ts'
import { readOutboxGrants } from '../outbox/findRightProblems.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'

/** Statements for whoever owns the tables, in their order. */
export interface RoleGrants {
  /** In the ledger's database. */
  ledger: string[]
  /** In the ERP's; null where the outbox's table is not there yet. */
  outbox: string[] | null
}

/**
 * The least that a role needs: of our schemas what daemons and commands do, of the outbox's table to read it and to write our
 * columns. Nothing is changed.
 *
 * @throws DatabaseUnusable if a database cannot be reached, or the ledger's has not been migrated
 */
export async function readGrants(
  config: Pick<StoreConfig, 'databaseUrl' | 'stateDatabaseUrl'>,
  table: OutboxTable,
  { role, kind }: { role: string; kind: RoleKind },
): Promise<RoleGrants> {
  const ledger = await inspectDatabase({
    variable: 'STATE_DATABASE_URL',
    url: config.stateDatabaseUrl,
    async look(db) {
      await assertMigrated(db, config.stateDatabaseUrl)
      return [...(await readRoleStatements(db, role)), ...(await readLedgerGrants(db, role, kind))]
    },
  })
  const outbox = await inspectDatabase({
    variable: 'DATABASE_URL',
    url: config.databaseUrl,
    async look(db) {
      const grants = await readOutboxGrants(db, table, role, kind === 'read')
      return grants && [...(await readRoleStatements(db, role)), ...grants]
    },
  })
  // In one database the role is made once.
  return { ledger, outbox: outbox?.filter((statement) => !ledger.includes(statement)) ?? null }
}
