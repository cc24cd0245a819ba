import type { Database } from '../postgres/database.ts'

/** A table that a query reads. Names are quoted. */
export interface ReadTable {
  schema: string
  table: string
  /** True if our own role may use the schema. */
  canUse: boolean
  /** True if our own role may select from the table. */
  canSelect: boolean
}

/**
 * Finds the tables that stand after "from" and "join" in queries. Postgres cannot plan a query without rights on them.
 */
export async function findTablesReadByQueries(db: Database, queries: readonly string[]): Promise<ReadTable[]> {
  const part = '(?:"(?:[^"]|"")+"|[a-z_][\\w$]*)'
  const reads = new RegExp(`\\b(?:from|join)\\s+(${part}(?:\\.${part})?)`, 'gi')
  const names = queries.flatMap((sql) => [...sql.matchAll(reads)].map(([, name]) => name))
  const { rows } = await db.query<ReadTable>(
    `select distinct pg_catalog.quote_ident(n.nspname) as schema, pg_catalog.quote_ident(c.relname) as table,
       pg_catalog.has_schema_privilege(n.oid, 'usage') as "canUse", pg_catalog.has_table_privilege(c.oid, 'select') as "canSelect"
     from pg_catalog.unnest($1::pg_catalog.text[]) as named(name)
       cross join lateral (select pg_catalog.parse_ident(name) as parts) parsed
       join pg_catalog.pg_class c on c.relname operator(pg_catalog.=) parts[pg_catalog.cardinality(parts)]
       join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
     where case when pg_catalog.cardinality(parts) operator(pg_catalog.=) 2 then n.nspname operator(pg_catalog.=) parts[1]
         else n.nspname operator(pg_catalog.=) any (pg_catalog.current_schemas(false)) end
       and c.relkind in ('r', 'p', 'v', 'm', 'f')
     order by 1, 2`,
    [names],
  )
  return rows
}

export function grantsToReadTables(
  tables: readonly ReadTable[],
  role: string,
  { onlyMissing }: { onlyMissing: boolean },
): string[] {
  const usage = tables
    .filter(({ schema, canUse }) => (onlyMissing ? !canUse : schema !== 'public'))
    .map(({ schema }) => `grant usage on schema ${schema} to ${role}`)
  const select = tables
    .filter(({ canSelect }) => !(onlyMissing && canSelect))
    .map(({ schema, table }) => `grant select on ${schema}.${table} to ${role}`)
  return [...new Set(usage), ...select]
}
