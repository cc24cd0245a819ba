import { type Database, readRoleSchemas } from '../postgres/database.ts'
import { nearestWord } from '../yaml/nearestWord.ts'

/** More tables than anybody has to look through for a slip of the pen. */
const tablesMax = 20_000

/**
 * The table that a name which leads to none was most likely meant to be: of the same name in another schema, or of a name like
 * it, among those that this user may look at.
 *
 * @param name as in the catalog, unquoted; without a schema, wherever the search path leads
 * @returns the name to write instead, with its schema where that is needed; null where nothing is near
 */
export async function findNearestTable(
  db: Database,
  { schema, table }: { schema: string | null; table: string },
): Promise<string | null> {
  const { rows } = await db.query<{ schema: string; name: string; visible: boolean }>(
    `select n.nspname as schema, c.relname as name, n.nspname = any($2) as visible
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
       and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'outboxd', 'pgboss', 'outboxd_capture', 'sandbox')
       and has_schema_privilege(n.oid, 'usage') order by c.relname, n.nspname limit $1`,
    [tablesMax, await readRoleSchemas(db)],
  )
  const named = new Map(
    rows.map((row) => [row.visible && schema === null ? row.name : `${row.schema}.${row.name}`, row]),
  )
  const elsewhere = [...named].find(([, { name }]) => name === table)
  if (elsewhere !== undefined) return elsewhere[0]
  const near = nearestWord(
    table,
    rows.map(({ name }) => name),
  )
  const found = [...named].filter(([, { name }]) => name === near)
  const [best] = found.find(([, row]) => row.schema === schema || (schema === null && row.visible)) ?? found[0] ?? []
  return best ?? null
}
