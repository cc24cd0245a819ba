import type { StoreConfig } from '../config.ts'
import { assertMigrated } from '../ledger/migrations.ts'
import { type RoleKind, readLedgerGrants, readRoleCreationStatements } from '../ledger/operator/grants.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { existingDocumentsQuery } from '../outbox/contentQueries.ts'
import { readCapturedTables } from '../outbox/documents.ts'
import { readOutboxGrants } from '../outbox/findPermissionProblems.ts'
import { type OutboxTable, qualifiedName } from '../outbox/outboxTable.ts'
import { findTablesReadByQueries, grantsToReadTables } from '../outbox/sourceGrants.ts'
import { quoteIdentifier, withSearchPathOfRole } from '../postgres/database.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'

export interface RoleGrants {
  ledger: string[]
  outbox: string[] | null
}

/** Lists the least permissions of a role. @throws DatabaseUnusable */
export async function readGrants(
  config: Pick<StoreConfig, 'databaseUrl' | 'stateDatabaseUrl'>,
  table: OutboxTable,
  mappings: Mappings,
  { role, kind }: { role: string; kind: RoleKind },
): Promise<RoleGrants> {
  const ledger = await inspectDatabase({
    variable: 'STATE_DATABASE_URL',
    url: config.stateDatabaseUrl,
    async look(db) {
      await assertMigrated(db, config.stateDatabaseUrl)
      return [...(await readRoleCreationStatements(db, role)), ...(await readLedgerGrants(db, role, kind))]
    },
  })
  const outbox = await inspectDatabase({
    variable: 'DATABASE_URL',
    url: config.databaseUrl,
    async look(db) {
      const grants = await readOutboxGrants(db, table, role, kind === 'read')
      if (grants === null) return null
      const rolePath = withSearchPathOfRole(db)
      const captured = await readCapturedTables(rolePath, qualifiedName(table), null)
      const sources = [...mappings.values()].flatMap(({ source }) => source?.sql ?? [])
      const conditions = captured.map((document) => existingDocumentsQuery(document).sql)
      const tables = await findTablesReadByQueries(rolePath, [...sources, ...conditions])
      const reads = grantsToReadTables(tables, quoteIdentifier(role), { onlyMissing: false })
      return [
        ...(await readRoleCreationStatements(db, role)),
        ...grants,
        ...reads.filter((grant) => !grants.includes(grant)),
      ]
    },
  })
  // if both are one database, the role is created once
  return { ledger, outbox: outbox?.filter((statement) => !ledger.includes(statement)) ?? null }
}
