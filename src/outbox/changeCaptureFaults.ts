import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { replaceProblems } from '../ledger/problems.ts'
import type { ChangeCaptureFault } from '../model/outbox.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { isCaptureInstalled } from './contentQueries.ts'

export async function readChangeCaptureFaults(pool: pg.Pool): Promise<ChangeCaptureFault[]> {
  if (!(await isCaptureInstalled(pool))) return []
  return inTransaction(pool, readTrouble, { openingSql: 'set local search_path = pg_catalog, pg_temp' })
}

export async function replaceChangeCaptureProblems(ledger: Database, erp: pg.Pool): Promise<void> {
  await replaceProblems(ledger, 'change_capture', toChangeCaptureProblems(await readChangeCaptureFaults(erp)))
}

async function readTrouble(db: Database): Promise<ChangeCaptureFault[]> {
  const { isForeign, rows } = await readView(db)
  return isForeign ? [foreignView] : rows
}

/** The problem's subject if the view of faults may run code of another role. */
export const faultsViewName = 'outboxd_capture.trouble'

const foreignView: ChangeCaptureFault = {
  table: faultsViewName,
  notes: 0,
  hasUnknown: false,
  since: null,
  reason:
    'the view may run code of another role with the rights of each role that reads it, so outboxd does not read it',
  insecure: true,
}

/**
 * Reads the view `trouble` if it and the views below it run only Postgres's own code, because a view runs functions
 * with the reader's rights. Without the right to read the view, does not try, because Postgres would log an error.
 */
async function readView(db: Database): Promise<{ isForeign: boolean; rows: ChangeCaptureFault[] }> {
  const { rows: found } = await db.query<{ readable: boolean }>(
    `select has_schema_privilege(s.oid, 'usage') and has_table_privilege(c.oid, 'select') as readable
     from pg_class c join pg_namespace s on s.oid = c.relnamespace
     where s.nspname = 'outboxd_capture' and c.relname = 'trouble' and c.relkind = 'v'`,
  )
  const statement = `outboxd_${randomUUID().replaceAll('-', '')}`
  // PREPARE runs nothing, and locks the view and its tables, so that they cannot change between the check and the read.
  if (found[0]?.readable) await db.query(`prepare ${statement} as ${troubleSql}`)
  const { rowCount: foreign } = await db.query(foreignCodeSql)
  const rows = found[0]?.readable && !foreign ? (await db.query<ChangeCaptureFault>(`execute ${statement}`)).rows : []
  if (found[0]?.readable) await db.query(`deallocate ${statement}`)
  return { isForeign: Boolean(foreign), rows }
}

const troubleSql = `select table_name as table, notes::float8 as notes, has_unknown as "hasUnknown",
    to_char(since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since, reason, false as insecure
  from outboxd_capture.trouble order by table_name, reason limit 100`

/**
 * Finds code of other roles that the view `trouble` could run. The view needs only built-in objects, on which Postgres
 * records no dependencies, and plain tables with columns of built-in types. Other types and indexes count, because
 * casts and index expressions run code.
 */
const foreignCodeSql = `
  with recursive view as (
    select c.oid from pg_class c join pg_namespace s on s.oid = c.relnamespace where s.nspname = 'outboxd_capture' and c.relname = 'trouble'
    union
    select t.oid from view v join pg_rewrite r on r.ev_class = v.oid
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
      join pg_class t on t.oid = d.refobjid where t.relkind = 'v'
  )
  select from view v join pg_attribute a on a.attrelid = v.oid where a.atttypid >= 16384::oid
  union all
  select from view v join pg_rewrite r on r.ev_class = v.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass::oid and d.objid = r.oid
    left join pg_class t on d.refclassid = 'pg_class'::regclass::oid and t.oid = d.refobjid
  where d.refclassid <> 'pg_namespace'::regclass::oid and (t.oid is null or t.oid not in (select oid from view)) and (
    t.relkind is distinct from 'r' or t.relhassubclass or t.relrowsecurity
    or exists (select from pg_attribute where attrelid = t.oid and (attgenerated = 'v' or atttypid >= 16384::oid))
    or exists (
      select from pg_depend own
      where own.refclassid in ('pg_proc'::regclass::oid, 'pg_operator'::regclass::oid, 'pg_type'::regclass::oid) and (
        own.classid = 'pg_class'::regclass::oid and own.objid in (select indexrelid from pg_index where indrelid = t.oid)
        or own.classid = 'pg_constraint'::regclass::oid and own.objid in (select oid from pg_constraint where conrelid = t.oid)
      )
    )
  )
  limit 1`

export function toChangeCaptureProblems(
  faults: readonly ChangeCaptureFault[],
): { subject: string; detail: string; retryInMs: null }[] {
  const tables = Map.groupBy(faults, ({ table }) => table)
  return [...tables].map(([subject, told]) => ({ subject, detail: told.map(sentence).join('; '), retryInMs: null }))
}

function sentence({ notes, hasUnknown, since, reason, insecure }: ChangeCaptureFault): string {
  if (insecure) return `SECURITY: ${reason}. Remove change capture with remove.sql, and install it again`
  if (notes === 0) return `changes are not captured: ${reason}`
  const which = hasUnknown ? ', not all of them known' : ''
  return `changes since ${since} were not captured (${notes} noted${which}): ${reason}`
}
