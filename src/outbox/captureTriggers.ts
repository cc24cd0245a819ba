import { createHash } from 'node:crypto'
import type { Mappings } from '../mapping/loadMappings.ts'
import { type Database, queryOne, withSearchPathOfRole } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'

/** The name of the function, and of its triggers, that `outboxd describe --capture` writes for a type: one for each type. */
export function captureFunctionName(type: string): string {
  const prefix = 'outboxd_capture_'
  if (/^[a-z0-9_]{1,39}$/.test(type)) return `${prefix}${type}`
  const readable = type
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '_')
    .slice(0, 32)
  return `${prefix}${readable}_${createHash('sha256').update(type).digest('hex').slice(0, 6)}`
}

/** Selects the table that the function `p` writes to; null if it is gone. Not by to_regclass, which needs rights on the schema. */
const tableOfCaptureSql = `(select c.oid::pg_catalog.regclass
  from pg_catalog.regexp_match(p.prosrc, '.*insert into ("(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)[.]("(?:[^"]|"")+"|[a-z_][a-z0-9_$]*) [(]type, key, payload[)]') as named(parts)
    join pg_catalog.pg_namespace n on pg_catalog.quote_ident(n.nspname) operator(pg_catalog.=) named.parts[1]
    join pg_catalog.pg_class c on c.relnamespace operator(pg_catalog.=) n.oid and pg_catalog.quote_ident(c.relname) operator(pg_catalog.=) named.parts[2])`

/**
 * Reads the table that the function writes to if it is not this outbox: the one of another ledger. Null if there is no
 * such function.
 *
 * @param fn quoted, with its schema
 */
export async function readOtherTableOfCapture(db: Database, fn: string, outboxSql: string): Promise<string | null> {
  const { rows } = await db.query<{ table: string }>(
    `select written::text as table from pg_proc p cross join lateral (select ${tableOfCaptureSql} as written) w
     where p.oid = to_regproc($1) and written <> $2::regclass`,
    [fn, outboxSql],
  )
  return rows[0]?.table ?? null
}

/** True if the outbox has the unique index that keeps a transaction from writing a document's key twice. */
export async function hasIndexOfCapture(db: Database, outboxSql: string): Promise<boolean> {
  const { found } = await queryOne<{ found: boolean }>(
    db,
    `select exists (select from pg_index where indrelid = $1::regclass and indisunique and indisvalid
       and pg_get_expr(indpred, indrelid) like '%captured_in%') as found`,
    [outboxSql],
  )
  return found
}

/**
 * Reads the roles that may write to these tables, but not insert into the outbox: the trigger would fail their
 * statements. Quoted; `public` for all roles.
 */
export async function readWritersWithoutInsert(
  db: Database,
  tables: readonly string[],
  outboxSql: string,
): Promise<string[]> {
  const { rows } = await db.query<{ role: string }>(
    `with given as (
       select g.grantee from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) g
       where c.oid = any($1::regclass[]) and g.privilege_type in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')
       union select g.grantee from pg_attribute a, aclexplode(a.attacl) g
       where a.attrelid = any($1::regclass[]) and g.privilege_type in ('INSERT', 'UPDATE')
     ), writer as (
       select case when grantee = 0 then 'public' else pg_get_userbyid(grantee) end as name,
         case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as role
       from given where grantee = 0 or exists (select from pg_roles where oid = grantee and not rolsuper)
     )
     select role from writer where not has_table_privilege(name, $2::regclass, 'insert') order by role`,
    [tables, outboxSql],
  )
  return rows.map(({ role }) => role)
}

interface CaptureTrigger {
  /** Quoted, with its schema. */
  table: string
  name: string
  isEnabled: boolean
}

/** Finds documents of mapping files whose changes a missing or disabled trigger does not capture, and roles that it stops. */
export async function findCaptureProblems(outbox: Outbox, mappings: Mappings): Promise<string[]> {
  const db = withSearchPathOfRole(outbox.pool)
  const { qualified: outboxSql } = (await outbox.inspect()).shape
  const problems: string[] = []
  for (const { type, document } of mappings.values()) {
    if (document === null) continue
    const triggers = await readTriggersOfDocument(db, document.table, type, outboxSql)
    if (triggers.length === 0)
      problems.push(
        `no trigger captures the changes of ${document.table}, the documents of type "${type}": \`outboxd describe --capture\` writes one`,
      )
    for (const { table, name, isEnabled } of triggers)
      if (!isEnabled) problems.push(`changes are not captured: alter table ${table} enable trigger ${name}`)
    const tables = [...new Set(triggers.map(({ table }) => table))]
    for (const role of await readWritersWithoutInsert(db, tables, outboxSql))
      problems.push(`the trigger fails statements of ${role}: grant insert on ${outboxSql} to ${role}`)
  }
  return problems
}

/** Reads the triggers of the function that captures a table's documents for a type, also those of other tables. */
async function readTriggersOfDocument(
  db: Database,
  table: string,
  type: string,
  outboxSql: string,
): Promise<CaptureTrigger[]> {
  const { rows } = await db.query<CaptureTrigger>(
    `select distinct pg_catalog.format('%I.%I', n.nspname, c.relname) as table, pg_catalog.quote_ident(t.tgname) as name,
       t.tgenabled in ('O', 'A') as "isEnabled"
     from pg_catalog.pg_trigger own
       join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) own.tgfoid
       join pg_catalog.pg_trigger t on t.tgfoid operator(pg_catalog.=) p.oid
       join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) t.tgrelid
       join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
     where own.tgrelid operator(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid
       and p.proname operator(pg_catalog.=) $2 and t.tgparentid operator(pg_catalog.=) 0
       -- Not for the outbox of another ledger. A view may read the table that the trigger writes to.
       and ((${tableOfCaptureSql} operator(pg_catalog.=) $3::pg_catalog.regclass) is not false
         or (select relkind from pg_catalog.pg_class where oid operator(pg_catalog.=) $3::pg_catalog.regclass) operator(pg_catalog.=) 'v')
     order by 1, 2`,
    [table, captureFunctionName(type), outboxSql],
  )
  return rows
}
