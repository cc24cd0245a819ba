import type { Settings } from '../ledger/settings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { type Database, queryOne, withSearchPathOfRole } from '../postgres/database.ts'
import { type OutboxTable, qualifiedNameSql, tableAccessDigest, toOutboxTable } from './outboxTable.ts'

/** The digests of outbox.yaml and of each mapping file, as they stand in the ledger's settings. */
export const digestFiles = (outboxTable: OutboxTable | string, mappings: Mappings): Settings => ({
  'outbox.yaml': tableAccessDigest(toOutboxTable(outboxTable)),
  ...Object.fromEntries([...mappings.values()].map(({ type, digest }) => [`mapping of ${type}`, digest])),
})

export const searchPathName = 'search_path of the role'
export const rowSecurityName = 'row-level security of the outbox'

/**
 * Reads what the files mean to a role: their digests; if they contain SQL, the schemas in which the role finds its names;
 * and the role itself, if policies hide rows of the outbox from it. Another role would read other tables or rows.
 */
export async function readFileSettings(
  erp: Database,
  outboxTable: OutboxTable | string,
  mappings: Mappings,
): Promise<Settings> {
  const table = toOutboxTable(outboxTable)
  const settings: Record<string, string> = { ...digestFiles(table, mappings) }
  const { path, restrictedRole } = await readRole(erp, table)
  const hasQueries = [...mappings.values()].some(({ source, document }) => source !== null || document !== null)
  if (hasQueries || table.filter !== null) settings[searchPathName] = path
  if (restrictedRole !== null) settings[rowSecurityName] = `that of ${restrictedRole}`
  return settings
}

/**
 * `path` names the schemas that exist and that the role may use, also the ledger's, which a role of that name finds by
 * "$user": it has tables with common names, such as `request`. Qualifies names for the same reason.
 */
async function readRole(erp: Database, table: OutboxTable): Promise<{ path: string; restrictedRole: string | null }> {
  return await queryOne(
    withSearchPathOfRole(erp),
    `select pg_catalog.array_to_string(pg_catalog.current_schemas(false)::pg_catalog.text[], ', ') as path,
       case when pg_catalog.row_security_active(pg_catalog.to_regclass($1)::pg_catalog.oid) then current_user::pg_catalog.text end as "restrictedRole"`,
    [qualifiedNameSql(table)],
  )
}
