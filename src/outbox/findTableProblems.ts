import type pg from 'pg'
import { beginTransaction, type Database, withSearchPathOfRole } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import { isMarkedOnCapture, type OutboxTable } from './outboxTable.ts'

export async function findTablesOfView(db: Database, qualified: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct pg_catalog.format('%I.%I', n.nspname, c.relname) as name
     from pg_rewrite r
       join pg_depend d on d.classid = 'pg_rewrite'::regclass::oid and d.objid = r.oid and d.refclassid = 'pg_class'::regclass::oid
       join pg_class c on c.oid = d.refobjid and c.oid <> r.ev_class and c.relkind in ('r', 'p', 'v', 'm', 'f')
       join pg_namespace n on n.oid = c.relnamespace
     where r.ev_class = to_regclass($1)::oid order by name`,
    [qualified],
  )
  return rows.map(({ name }) => name)
}

export function suggestTableInstead(relkind: string, tablesBelow: readonly string[]): string {
  if (relkind === 'f') return 'let DATABASE_URL lead to the database where the table itself is'
  if (tablesBelow.length === 0) return 'describe the table below it'
  return `describe the table below it (${tablesBelow.map((name) => `outboxd describe '${name}'`).join(', or ')})`
}

/** Names of relations whose rows do not show which transaction wrote them, by pg_class.relkind. */
export const relationKindNames: Readonly<Record<string, string>> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
}

/** True if rows must be marked on capture. */
export const mustRowsBeMarked = (relkind: string): boolean => relationKindNames[relkind] !== undefined

/**
 * Without marks, the ledger tracks rows by the transactions that wrote them. A view does not show these, and a foreign
 * table shows 0, so a row that commits late would be missed.
 */
export async function findRelationKindProblem(
  db: Database,
  qualified: string,
  relkind: string,
  table: OutboxTable,
): Promise<string | null> {
  if (!mustRowsBeMarked(relkind) || (relkind !== 'm' && isMarkedOnCapture(table))) return null
  const other = suggestTableInstead(relkind, relkind === 'f' ? [] : await findTablesOfView(db, qualified))
  if (relkind === 'm') return `is ${relationKindNames[relkind]}, in which no row can be locked or marked: ${other}`
  return `is ${relationKindNames[relkind]}, which does not show the transactions that wrote its rows, so they must be marked on capture. Give it a column that outboxd can set (state with set: [queued], or a value for queued), or ${other}`
}

interface IdState {
  kind: string
  notNull: boolean
  /** A valid unique index of all rows on exactly this column, deferred or not. */
  unique: boolean
  /** True if tables inherit from it, because its own indexes do not cover their rows. */
  inherited: boolean
}

const idStateSql = `
  select c.relkind as kind, a.attnotnull as "notNull",
    exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as unique,
    exists (select from pg_inherits h where h.inhparent = c.oid) and c.relkind <> 'p' as inherited
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.oid = to_regclass($1)::oid and a.attname = $2 and not a.attisdropped`

/**
 * Checks that ids are unique: the second of two rows with one id would never be sent. If the catalog cannot show it, as
 * for a view, the description must promise it.
 */
export async function findIdColumnProblems(db: Database, qualified: string, table: OutboxTable): Promise<string[]> {
  const { id, idPromised } = table
  const { rows } = await db.query<IdState>(idStateSql, [qualified, id])
  const [state] = rows
  if (state === undefined) return []
  const { kind, notNull, unique, inherited } = state
  const isCertain = unique && !inherited
  const catalogCan = (kind === 'r' || kind === 'm') && !inherited
  if (isCertain && (notNull || kind === 'm')) return []
  if (!catalogCan && idPromised) return []
  if (!catalogCan)
    return [`${cannotSay(kind, inherited)} that "${id}" is unique. If it is, promise it (id_unique: promised)`]
  const quoted = `"${id}"`
  return [
    isCertain
      ? null
      : `has no unique index on exactly ${quoted}, and two rows of one id would count as one: ${create(qualified, id)}, or name another column as id`,
    notNull || kind === 'm' ? null : `allows NULL in ${quoted}, by which rows are recognised: make it not null`,
  ].filter((problem) => problem !== null)
}

const create = (qualified: string, id: string) => `create unique index concurrently on ${qualified} ("${id}")`

function cannotSay(kind: string, inherited: boolean): string {
  if (inherited) return 'has tables that inherit from it, so no index can show'
  return kind === 'p' ? 'is partitioned by another column, so no index shows' : 'is not a table, so no index shows'
}

/**
 * If the ledger keeps a cursor, a filter must depend on the row only. A row that passes `not_before <= now()` later
 * would stay behind the cursor. Postgres decides: it must accept the filter as an index predicate, on an empty copy of
 * the table.
 */
export async function findFilterProblems(
  pool: pg.Pool,
  qualified: string,
  table: OutboxTable,
  columns: Iterable<string>,
): Promise<string[]> {
  const { filter } = table
  if (filter === null || isMarkedOnCapture(table)) return []
  await using transaction = await beginTransaction(withSearchPathOfRole(pool))
  const { db } = transaction
  try {
    // a filter may call the row "o", as our statements do
    await db.query(`create temporary table o (like ${qualified}) on commit drop`)
  } catch (error) {
    if (!mayNotCreate(error)) throw error
    const message = [...new Set(filter.match(timeMessage) ?? [])]
    return message.length === 0 ? [] : [problem(message)]
  }
  try {
    await db.query('savepoint asked')
    await db.query(`create index on pg_temp.o ((1)) where (${filter}\n)`)
    return []
  } catch (error) {
    if (errorCodeOf(error) !== notImmutable)
      return [`cannot be read with its filter: ${(error as Error).message}${didYouMeanColumn(error, columns)}`]
    await db.query('rollback to savepoint asked')
    await db.query(`create temporary view filtered as select from pg_temp.o where (${filter}\n)`)
    await db.query('set local search_path = pg_catalog, pg_temp')
    const { rows } = await db.query<{ name: string }>(changingParts)
    return [problem(rows.map(({ name }) => name))]
  }
}

function didYouMeanColumn(error: unknown, columns: Iterable<string>): string {
  const missing =
    errorCodeOf(error) === '42703' ? /column (?:o\.)?"?([^"]+?)"? does not exist/.exec(String(error))?.[1] : null
  return missing ? didYouMean(missing, columns) : ''
}

const notImmutable = '42P17'

/**
 * The role may not create temporary tables, or the server is a standby. Then the filter's text is searched for
 * functions of time.
 */
const mayNotCreate = (error: unknown) =>
  ['42501', '25006', '0A000', '42809'].some((code) => code === errorCodeOf(error))
const timeMessage =
  /\b(now|current_date|current_time|current_timestamp|localtime|localtimestamp|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|random|age)\b/gi

/** Functions in a view whose result may change, by Postgres's parse tree. */
const changingParts = `
  select distinct p.proname as name from pg_rewrite r
    cross join lateral regexp_matches(r.ev_action::text, ':(?:func|opfunc)id (\\d+)', 'g') m
    join pg_proc p on p.oid = m[1]::oid
  where r.ev_class = 'pg_temp.filtered'::regclass::oid and p.provolatile <> 'i'
  union all
  select 'current_date, current_timestamp or the like' from pg_rewrite r
  where r.ev_class = 'pg_temp.filtered'::regclass::oid and r.ev_action::text like '%{SQLVALUEFUNCTION%'
  order by name`

function problem(parts: readonly string[]): string {
  const which = parts.length === 0 ? 'a cast that depends on settings or catalogs' : parts.join(', ')
  return `has a filter that depends on more than the row (${which}). The ledger keeps a cursor, so a row for which the filter becomes true later would never be captured. Mark rows on capture (set: [queued]), or let the ERP write a column when the time has come`
}

/** Row-level security without a fitting policy hides every row, and raises no error. */
export async function findRowSecurityProblems(db: Database, qualified: string, table: OutboxTable): Promise<string[]> {
  const { isActive, role, allows } = await readPolicies(db, qualified)
  if (!isActive) return []
  const missing = [
    ...(allows.select ? [] : [{ verb: 'see', command: 'select' }]),
    ...(allows.update || (table.state === null && table.write.length === 0)
      ? []
      : [{ verb: 'update', command: 'update' }]),
  ]
  return missing.map(
    ({ verb, command }) =>
      `has row-level security, and no policy lets ${role} ${verb} rows: create policy outboxd_${command} on ${qualified} for ${command} to ${role} using (…)`,
  )
}

export async function findRowSecurityRemarks(db: Database, qualified: string): Promise<string[]> {
  const { isActive, role } = await readPolicies(db, qualified)
  if (!isActive) return []
  return [
    `the table has row-level security that holds for ${role}: the daemon neither sends nor counts rows that no policy shows it. Make sure that a policy shows it every row to send`,
  ]
}

interface Policies {
  /** False for owners, superusers and roles that bypass row-level security. */
  isActive: boolean
  role: string
  allows: { select: boolean; update: boolean }
}

async function readPolicies(db: Database, qualified: string): Promise<Policies> {
  const { rows } = await db.query<{ isActive: boolean; role: string; select: boolean; update: boolean }>(
    `select row_security_active(c.oid) as "isActive", pg_catalog.quote_ident(current_user) as role,
       coalesce(bool_or(p.polcmd in ('r', '*')), false) as "select", coalesce(bool_or(p.polcmd in ('w', '*')), false) as "update"
     from pg_class c left join pg_policy p on p.polrelid = c.oid and p.polpermissive
       and exists (select from unnest(p.polroles) r where r = 0 or pg_has_role(r, 'usage'))
     where c.oid = to_regclass($1)::oid group by c.oid`,
    [qualified],
  )
  const { isActive = false, role = '', select = false, update = false } = rows[0] ?? {}
  return { isActive, role, allows: { select, update } }
}
