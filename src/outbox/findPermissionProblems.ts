import { type Database, readRoleSchemas } from '../postgres/database.ts'
import { isMarkedOnCapture, type OutboxTable } from './outboxTable.ts'
import { stateExpressions } from './stateForms.ts'

export interface NeededPermissions {
  /** Null: every column of the table. */
  readonly select: readonly string[] | null
  readonly update: readonly string[]
}

function neededRights(table: OutboxTable): NeededPermissions {
  const { payload, type, createdAt, state, write } = table
  const form = stateExpressions(state)
  const written = [
    ...(form !== null && form.writes.length > 0 ? [form.column] : []),
    ...write.map(({ column }) => column),
  ]
  const named = [
    table.id,
    table.order,
    table.sequence,
    type.kind === 'column' ? type.column : null,
    table.key,
    createdAt?.column ?? null,
    state?.column ?? null,
    ...(payload.kind === 'column' ? [payload.column] : [...(payload.columns?.values() ?? [])]),
    ...written,
  ].filter((name) => name !== null)
  const isWhole = payload.kind === 'columns' && payload.columns === null
  return { select: isWhole ? null : [...new Set(named)], update: [...new Set(written)] }
}

/**
 * Describes a missing permission on a table's schema, with the GRANT that adds it; null if our role may use the schema.
 */
export async function findSchemaPermissionProblem(
  db: Database,
  name: Pick<OutboxTable, 'schema' | 'table'>,
): Promise<string | null> {
  const found = (await findTable(db, name)) ?? (name.schema === null ? null : await findSchema(db, name.schema))
  return found === null || found.mayUse ? null : missingSchema(found)
}

export async function findPermissionProblems(db: Database, table: OutboxTable): Promise<string[]> {
  const found = await findTable(db, table)
  if (found === null) return []
  const { role, schema, name, mayUse } = found
  if (!mayUse) return [missingSchema(found)]
  const { select, update } = neededRights(table)
  const { unreadable, unwritable, sequence } = await readRights(db, found.oid, {
    select,
    update,
    system: systemColumns(table),
    sequence: table.sequence,
  })
  const qualified = `${schema}.${name}`
  const lacks = [
    unreadable.length > 0 && {
      what: `read ${shortened(unreadable)}`,
      grant: `grant select on ${qualified} to ${role}`,
    },
    unwritable.length > 0 && {
      what: `write ${shortened(unwritable)}`,
      grant: `grant update (${listed(unwritable)}) on ${qualified} to ${role}`,
    },
    sequence !== null && {
      what: `read the sequence ${sequence}`,
      grant: `grant select on sequence ${sequence} to ${role}`,
    },
  ].filter((lack) => lack !== false)
  if (lacks.length === 0) return []
  return [
    missing(
      role,
      lacks.map(({ what }) => `${what} of ${qualified}`),
      lacks.map(({ grant }) => grant),
    ),
  ]
}

export async function readOutboxGrants(
  db: Database,
  table: OutboxTable,
  role: string,
  onlyReads: boolean,
): Promise<string[] | null> {
  const found = await findTable(db, table)
  if (found === null) return null
  const { rows } = await db.query<{ statement: string }>(
    `select statement from (
       select 1 as n, pg_catalog.format('grant usage on schema %s to %I', $2::text, $1::text) as statement
       union all select 2, pg_catalog.format('grant select on %s.%s to %I', $2::text, $3::text, $1::text)
       union all select 3, pg_catalog.format('grant select on sequence %s to %I', pg_get_serial_sequence($4::oid::regclass::text, $5), $1::text)
         where $5::text is not null
       union all select 4, pg_catalog.format('grant update (%s) on %s.%s to %I', columns, $2::text, $3::text, $1::text) from (
         select string_agg(pg_catalog.quote_ident(name), ', ' order by nth) as columns from unnest($6::text[]) with ordinality as written (name, nth)
       ) ours where columns is not null
     ) needed order by n`,
    [role, found.schema, found.name, found.oid, table.sequence, onlyReads ? [] : neededRights(table).update],
  )
  return rows.map(({ statement }) => statement)
}

const missing = (role: string, may: readonly string[], grants: readonly string[]) =>
  [
    `${role} has no permission to ${may.join(', or to ')}. The owner grants it with:`,
    ...grants.map((grant) => `${grant};`),
  ].join('\n')

const missingSchema = ({ role, schema }: FoundSchema) =>
  missing(role, [`use the schema ${schema}`], [`grant usage on schema ${schema} to ${role}`])

const shownMax = 6

function shortened(names: readonly string[]): string {
  const more = names.length - shownMax
  return more < 2 ? listed(names) : `${listed(names.slice(0, shownMax))} and ${more} more columns`
}

const listed = (names: readonly string[]) => names.join(', ')

/** Locked rows are found by xmax. Rows without a state are ordered by their transactions. */
const systemColumns = (table: OutboxTable): string[] =>
  isMarkedOnCapture(table) ? ['xmax'] : table.sequence === null ? ['xmin', 'cmin'] : []

interface FoundSchema {
  role: string
  schema: string
  mayUse: boolean
}

interface FoundTable extends FoundSchema {
  oid: string
  name: string
}

async function findSchema(db: Database, schema: string): Promise<FoundSchema | null> {
  const { rows } = await db.query<FoundSchema>(
    `select pg_catalog.quote_ident(current_user) as role, pg_catalog.quote_ident(nspname) as schema, has_schema_privilege(oid, 'usage') as "mayUse"
     from pg_namespace where nspname = $1`,
    [schema],
  )
  return rows[0] ?? null
}

/** Finds the table even if our role may not use its schema. `to_regclass` would not find it then. */
async function findTable(
  db: Database,
  { schema, table }: Pick<OutboxTable, 'schema' | 'table'>,
): Promise<FoundTable | null> {
  const { rows } = await db.query<FoundTable>(
    `select c.oid::text, pg_catalog.quote_ident(current_user) as role, pg_catalog.quote_ident(n.nspname) as schema, pg_catalog.quote_ident(c.relname) as name,
       has_schema_privilege(n.oid, 'usage') as "mayUse"
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f') and case when $1::text is null
       then n.nspname = any($3) else n.nspname = $1 end
     order by array_position($3, n.nspname) limit 1`,
    [schema, table, await readRoleSchemas(db)],
  )
  return rows[0] ?? null
}

interface Rights {
  unreadable: string[]
  unwritable: string[]
  /** The sequence, quoted, if our role may not read it. */
  sequence: string | null
}

/** Leaves out columns that do not exist, because `readTableShape` reports them. */
async function readRights(
  db: Database,
  oid: string,
  { select, update, system, sequence }: NeededPermissions & { system: readonly string[]; sequence: string | null },
): Promise<Rights> {
  const { rows } = await db.query<Rights>(
    `select
       array(select pg_catalog.quote_ident(attname) from pg_attribute where attrelid = $1::oid and not attisdropped
         and (attname = any($2::text[]) or attname = any($4::text[]) or ($2::text[] is null and attnum > 0))
         and not has_column_privilege($1::oid, attnum, 'select') order by attnum) as unreadable,
       array(select pg_catalog.quote_ident(attname) from pg_attribute where attrelid = $1::oid and not attisdropped and attname = any($3::text[])
         and not has_column_privilege($1::oid, attnum, 'update') order by attnum) as unwritable,
       (select s.id::text from pg_attribute a
          cross join lateral (select pg_get_serial_sequence($1::oid::regclass::text, a.attname)::regclass as id) s
        where a.attrelid = $1::oid and a.attname = $5 and not a.attisdropped
          and not has_sequence_privilege(s.id, 'select') and not has_sequence_privilege(s.id, 'usage')) as sequence`,
    [oid, select, update, system, sequence],
  )
  return rows[0] ?? { unreadable: [], unwritable: [], sequence: null }
}
