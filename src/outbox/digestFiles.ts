import type { Settings } from '../ledger/settings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { type Database, queryOne, withSearchPathOfRole } from '../postgres/database.ts'
import { type OutboxTable, tableAccessDigest, toOutboxTable } from './outboxTable.ts'

/** The digests of outbox.yaml and of each mapping file, as they stand in the ledger's settings. */
export const digestFiles = (outboxTable: OutboxTable | string, mappings: Mappings): Settings => ({
  'outbox.yaml': tableAccessDigest(toOutboxTable(outboxTable)),
  ...Object.fromEntries([...mappings.values()].map(({ type, digest }) => [`mapping of ${type}`, digest])),
})

export const searchPathName = 'search_path of the role'

/**
 * Reads what the files mean in this database: their digests and, if they contain SQL, the schemas in which the role finds
 * its names. A role with other schemas would read other tables.
 */
export async function readFileSettings(
  erp: Database,
  outboxTable: OutboxTable | string,
  mappings: Mappings,
): Promise<Settings> {
  const digests = digestFiles(outboxTable, mappings)
  const hasQueries = [...mappings.values()].some(({ source, document }) => source !== null || document !== null)
  if (!hasQueries && toOutboxTable(outboxTable).filter === null) return digests
  return { ...digests, [searchPathName]: await readSearchPath(erp) }
}

/** Returns the schemas that exist and that the role may use. Qualifies names, because the path may have others of the same names. */
async function readSearchPath(erp: Database): Promise<string> {
  const { path } = await queryOne<{ path: string }>(
    withSearchPathOfRole(erp),
    `select pg_catalog.array_to_string(pg_catalog.current_schemas(false)::pg_catalog.text[], ', ') as path`,
  )
  return path
}
