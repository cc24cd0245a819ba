import { type Database, readSchemasInSearchPath } from '../postgres/database.ts'
import { listColumnsNamedInOutboxFile, type OutboxTable, tableFormOf } from './outboxTable.ts'

interface Grant {
  readonly statement: string
  /** True if the session's own role lacks the grant. */
  readonly isMissing: boolean
}

interface NeededPermissions {
  /** Null means all columns. */
  readonly select: readonly string[] | null
  readonly update: readonly string[]
  readonly sequence: string | null
}

function neededPermissions(table: OutboxTable): NeededPermissions {
  const columns = listColumnsNamedInOutboxFile(table)
  // The filter may read any column.
  const readsAll = table.filter !== null || (table.payload.kind === 'columns' && table.payload.columns === null)
  return {
    select: readsAll ? null : [...columns.map(({ column }) => column), ...systemColumns(table)],
    update: columns.filter(({ isWritten }) => isWritten).map(({ column }) => column),
    sequence: table.sequence,
  }
}

/** Locked rows are found by xmax. */
const systemColumns = (table: OutboxTable): string[] => (tableFormOf(table) === 'append-only' ? [] : ['xmax'])

type TableName = Pick<OutboxTable, 'schema' | 'table'>

/** Reads the catalog, because `to_regclass` does not find a table whose schema our role may not use. */
const grantsSql = `
  with t as (
    select c.oid, n.nspname, c.relname, has_schema_privilege(n.oid, 'usage') as "mayUse"
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')
      and case when $1::text is null then n.nspname = any($3) else n.nspname = $1 end
    order by array_position($3, n.nspname) limit 1
  ), role as (select pg_catalog.quote_ident(coalesce($4, current_user)) as name
  ), col as (
    select a.* from t join pg_attribute a on a.attrelid = t.oid where not a.attisdropped
  )
  select statement, "isMissing" from (
    select 1 as n, pg_catalog.format('grant usage on schema %I to %s', nspname, name) as statement,
      not has_schema_privilege(oid, 'usage') as "isMissing"
    from pg_namespace, role where nspname = coalesce($1, (select nspname from t))
    union all
    select 2, pg_catalog.format('grant select on %I.%I to %s', nspname, relname, name), exists (
      select from col where (attname = any($5::text[]) or ($5::text[] is null and attnum > 0))
        and not has_column_privilege(attrelid, attnum, 'select'))
    from t, role
    union all
    select 3, pg_catalog.format('grant select on sequence %s to %s', s.id, name),
      not has_sequence_privilege(s.id, 'select') and not has_sequence_privilege(s.id, 'usage')
    from t join role on "mayUse" join col on attname = $6
      cross join lateral (select pg_get_serial_sequence(t.oid::regclass::text, attname)::regclass as id) s
    where s.id is not null
    union all
    select 4, pg_catalog.format('grant update (%s) on %I.%I to %s', string_agg(pg_catalog.quote_ident(attname), ', ' order by attnum),
      nspname, relname, name), bool_or(not has_column_privilege(attrelid, attnum, 'update'))
    from t, role, col where attname = any($7::text[]) group by nspname, relname, name
  ) needed order by n`

/**
 * If the table does not exist, lists only the grant on the schema.
 * @param role null for the session's own
 */
async function readGrantsOnTable(
  db: Database,
  { schema, table }: TableName,
  role: string | null,
  { select, update, sequence }: NeededPermissions,
): Promise<Grant[]> {
  const name = [schema, table, await readSchemasInSearchPath(db)]
  const { rows } = await db.query<Grant>(grantsSql, [...name, role, select, sequence, update])
  return rows
}

/** Lists all grants that the role needs, also those it has. @returns null if the table does not exist */
export async function readOutboxGrantStatements(
  db: Database,
  table: OutboxTable,
  role: string,
  isReadOnly: boolean,
): Promise<string[] | null> {
  const { update, ...reads } = neededPermissions(table)
  const grants = await readGrantsOnTable(db, table, role, { ...reads, update: isReadOnly ? [] : update })
  return grants.length < 2 ? null : grants.map(({ statement }) => statement)
}

export const findPermissionProblems = async (db: Database, table: OutboxTable): Promise<string[]> =>
  missingGrantsMessages(await readGrantsOnTable(db, table, null, neededPermissions(table)))

export async function findSchemaPermissionProblem(db: Database, name: TableName): Promise<string | null> {
  const grants = await readGrantsOnTable(db, name, null, { select: [], update: [], sequence: null })
  return missingGrantsMessages(grants)[0] ?? null
}

function missingGrantsMessages(grants: readonly Grant[]): string[] {
  const missing = grants.filter(({ isMissing }) => isMissing).map(({ statement }) => `${statement};`)
  if (missing.length === 0) return []
  return [['the database role lacks permissions. The owner grants them with:', ...missing].join('\n')]
}

/**
 * Takes the tables from the words after "from" and "join", because Postgres cannot plan a query without rights on its
 * tables.
 *
 * @param role null for the session's own
 */
export async function readNeededQueryGrants(
  db: Database,
  queries: readonly string[],
  role: string | null = null,
): Promise<Grant[]> {
  const part = '(?:"(?:[^"]|"")+"|[a-z_][\\w$]*)'
  const reads = new RegExp(`\\b(?:from|join)\\s+(${part}(?:\\.${part})?)`, 'gi')
  const names = queries.flatMap((sql) => [...sql.matchAll(reads)].map(([, name]) => name))
  const { rows } = await db.query<Grant>(
    `with named as (
       select distinct n.oid as schema_id, n.nspname, c.oid, c.relname, pg_catalog.quote_ident(coalesce($2, current_user)) as role
       from pg_catalog.unnest($1::pg_catalog.text[]) as named(name)
         cross join lateral (select pg_catalog.parse_ident(name) as parts) parsed
         join pg_catalog.pg_class c on c.relname operator(pg_catalog.=) parts[pg_catalog.cardinality(parts)]
         join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
       where case when pg_catalog.cardinality(parts) operator(pg_catalog.=) 2 then n.nspname operator(pg_catalog.=) parts[1]
           else n.nspname operator(pg_catalog.=) any (pg_catalog.current_schemas(false)) end
         and c.relkind in ('r', 'p', 'v', 'm', 'f')
     )
     select statement, "isMissing" from (
       select distinct 1 as n, pg_catalog.format('grant usage on schema %I to %s', nspname, role) as statement,
         not pg_catalog.has_schema_privilege(schema_id, 'usage') as "isMissing" from named
       union all
       select 2, pg_catalog.format('grant select on %I.%I to %s', nspname, relname, role),
         not pg_catalog.has_table_privilege(oid, 'select') from named
     ) needed order by n, statement`,
    [names, role],
  )
  return rows
}
