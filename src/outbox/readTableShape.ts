import type pg from 'pg'
import type { OutboxIdentity } from '../ledger/binding.ts'
import { type Database, readRoleSchemas, withSearchPathOfRole } from '../postgres/database.ts'
import { didYouMean, nearestWord } from '../yaml/nearestWord.ts'
import { baseTypeJoinSql, type Column, type TableShape } from './columns.ts'
import {
  findFilterProblems,
  findIdColumnProblems,
  findRelationKindProblem,
  findRowSecurityProblems,
} from './findTableProblems.ts'
import { isMarkedOnCapture, type OutboxTable, qualifiedName } from './outboxTable.ts'

export class OutboxTableUnusable extends Error {
  override name = 'OutboxTableUnusable'
}

/** Adds the schema in which the role's search path finds the table, if the table exists. */
export async function resolveTableSchema<T extends Pick<OutboxTable, 'schema' | 'table'>>(
  db: Database,
  table: T,
): Promise<T> {
  if (table.schema !== null) return table
  // Every name is qualified, because the role's search path may have objects of the same names.
  const { rows } = await withSearchPathOfRole(db).query<{ schema: string }>(
    `select n.nspname as schema from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
     where c.oid operator(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid`,
    [qualifiedName(table)],
  )
  return rows[0] === undefined ? table : { ...table, schema: rows[0].schema }
}

/**
 * Finds the client's code that runs in statements on rows: views, rules, policies, triggers of updates, and all that
 * needs functions, operators or types outside Postgres's own.
 */
const clientCodeSql = `
  with recursive part as (
    select $1::regclass::oid as id union all select h.inhrelid from part join pg_inherits h on h.inhparent = part.id
  ), own as (
    select 'pg_class'::regclass::oid as class, id as object from part
    union all select 'pg_class'::regclass::oid, indexrelid from pg_index where indrelid in (select id from part)
    union all select 'pg_constraint'::regclass::oid, oid from pg_constraint where conrelid in (select id from part)
    union all select 'pg_attrdef'::regclass::oid, oid from pg_attrdef where adrelid in (select id from part)
  )
  select exists (select from pg_class where oid in (select id from part) and (relkind not in ('r', 'p') or relrowsecurity or relhasrules))
    or exists (
      select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
      where t.tgrelid in (select id from part) and not t.tgisinternal and t.tgtype::int & 16 = 16
        and not exists (select from unnest(p.proconfig) setting where setting like 'search_path=%')
    )
    or exists (
      select from pg_depend d
      where (d.classid, d.objid) in (select class, object from own)
        and d.refclassid in ('pg_proc'::regclass::oid, 'pg_operator'::regclass::oid, 'pg_type'::regclass::oid, 'pg_opclass'::regclass::oid)
    ) as "hasClientCode"`

export async function tableHasClientCode(db: Database, qualified: string): Promise<boolean> {
  const { rows } = await db.query<{ hasClientCode: boolean }>(clientCodeSql, [qualified])
  return rows[0]?.hasClientCode ?? true
}

/** @throws OutboxTableUnusable if the table cannot be read as described */
export async function readTableShape(db: pg.Pool, named: OutboxTable): Promise<TableShape> {
  const table = await resolveTableSchema(db, named)
  const qualified = qualifiedName(table)
  // The role's search path gives types the names that the client's statements use.
  const { rows } = await withSearchPathOfRole(db).query<Column & { name: string; kind: string }>(
    `select a.attname as name, c.relkind as kind, pg_catalog.format_type(base.type, -1) as type,
       pg_catalog.format_type(a.atttypid, a.atttypmod) as "exactType", a.attnotnull as "notNull",
       pg_catalog.format_type(base.type, null) as "baseType"
     from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) a.attrelid
       ${baseTypeJoinSql}
     where a.attrelid operator(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
     order by a.attnum`,
    [qualified],
  )
  const described = table.file ?? 'OUTBOX_TABLE'
  if (rows.length === 0) {
    const nearest = await findTableOfSimilarName(db, table)
    const hints = [
      nearest === null ? null : `did you mean "${nearest}"?`,
      table.file === null ? 'create it with "outboxd migrate --outbox", or describe yours in outbox.yaml' : null,
    ].filter((hint) => hint !== null)
    const missing = `there is no table ${qualifiedName(named)} in the outbox's database, or this user has no permission to see it`
    throw new OutboxTableUnusable(`${described}: ${[missing, ...hints].join('; ')}`)
  }
  const columns = new Map(rows.map(({ name, kind: _, ...column }) => [name, column]))
  const view = await findRelationKindProblem(db, qualified, rows[0]?.kind ?? '', table)
  const problems = view === null ? findProblems(table, columns) : [view]
  if (table.sequence !== null && problems.length === 0)
    problems.push(...(await findSequenceProblems(db, qualified, table.sequence)))
  if (problems.length === 0) {
    problems.push(...(await findIdColumnProblems(db, qualified, table)))
    problems.push(...(await findFilterProblems(db, qualified, table, columns.keys())))
    problems.push(...(await findRowSecurityProblems(db, qualified, table)))
  }
  if (problems.length === 0) {
    const hasClientCode = table.filter !== null || (await tableHasClientCode(db, qualified))
    return { qualified, columns, hasSystemColumns: rows.every(({ kind }) => /^[rp]$/.test(kind)), hasClientCode }
  }
  throw new OutboxTableUnusable(
    problems.map((problem) => `${described}: the table ${qualifiedName(named)} ${problem}`).join('\n'),
  )
}

function findProblems(table: OutboxTable, columns: ReadonlyMap<string, Column>): string[] {
  const missing = namedColumns(table)
    .filter(([, name]) => !columns.has(name))
    .map(
      ([where, name]) =>
        `has no column "${name}" (${where}); it has ${[...columns.keys()].join(', ')}${didYouMean(name, columns.keys())}`,
    )
  if (missing.length > 0) return missing
  const problems: string[] = []
  const { payload, createdAt } = table
  const payloadType = payload.kind === 'column' ? (columns.get(payload.column)?.baseType ?? '') : 'json'
  if (!payloadTypes.test(payloadType))
    problems.push(`keeps the payload as ${payloadType}: it must be jsonb, json, text or bytea`)
  const timeType = createdAt === null ? null : (columns.get(createdAt.column)?.baseType ?? '')
  if (timeType !== null && numberTypes.test(timeType) && createdAt?.unit === null)
    problems.push(`keeps created_at as a number: say its unit, { column: …, unit: milliseconds }`)
  else if (timeType !== null && !numberTypes.test(timeType) && !timeTypes.test(timeType))
    problems.push(`keeps created_at as ${timeType}: it must be a time, a date or a number`)
  if (!isMarkedOnCapture(table)) {
    for (const name of [table.sequence, table.order, table.id]) {
      if (name !== null && columns.get(name)?.notNull === false)
        problems.push(`allows NULL in "${name}", by which rows are put in order: make it not null`)
    }
  }
  return problems
}

const payloadTypes = /^(jsonb?|text|character varying|character|bytea)$/
const numberTypes = /^(bigint|integer|numeric|double precision)$/
const timeTypes = /^(timestamp with(out)? time zone|date)$/

function namedColumns(table: OutboxTable): [string, string][] {
  const { payload, type, createdAt, state } = table
  const named: [string, string | null | undefined][] = [
    ['id', table.id],
    ['order', table.order],
    ['sequence', table.sequence],
    ['type', type.kind === 'column' ? type.column : null],
    ['key', table.key],
    ['created_at', createdAt?.column],
    ['payload', payload.kind === 'column' ? payload.column : null],
    ['state', state?.column],
    ...table.write.map(({ column }): [string, string] => ['write', column]),
    ...(payload.kind === 'columns' ? [...(payload.columns?.values() ?? [])] : []).map((column): [string, string] => [
      'payload',
      column,
    ]),
  ]
  return named.flatMap(([where, name]) => (name === null || name === undefined ? [] : [[where, name]]))
}

/** A position in a sequence means nothing if a session draws numbers ahead of its inserts. */
async function findSequenceProblems(db: Database, qualified: string, column: string): Promise<string[]> {
  const { rows } = await db.query<{ cached: number; falls: boolean }>(
    'select seqcache::int as cached, seqincrement < 0 as falls from pg_sequence where seqrelid = pg_get_serial_sequence($1, $2)::regclass::oid',
    [qualified, column],
  )
  const instead = 'leave "sequence" out, and rows are read in the order of their transactions'
  if (rows[0] === undefined)
    return [`draws "${column}" from no sequence of its own (identity, serial, or a sequence owned by it): ${instead}`]
  if (rows[0].falls)
    return [
      `draws "${column}" from a sequence that counts down, so new rows stand before the old: let it count up, or ${instead}`,
    ]
  if (rows[0].cached > 1)
    return [`draws "${column}" from a sequence with cache ${rows[0].cached}: alter it to cache 1, or ${instead}`]
  return []
}

export async function readOutboxIdentity(db: Database, qualified: string, idColumn: string): Promise<OutboxIdentity> {
  const { rows } = await db.query<{ database: string; table: string }>(
    `select current_database()::text as database, n.nspname || '.' || c.relname as "table"
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)::oid`,
    [qualified],
  )
  return { ...(rows[0] as (typeof rows)[0]), idColumn }
}

const tablesMax = 20_000

export async function findTableOfSimilarName(
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
  const names = rows.map(({ name }) => name)
  const near = names.includes(table) ? table : nearestWord(table, names)
  const alike = rows.filter(({ name }) => name === near)
  const best = alike.find((row) => (schema === null ? row.visible : row.schema === schema)) ?? alike[0]
  if (best === undefined) return null
  return best.visible && schema === null ? best.name : `${best.schema}.${best.name}`
}
