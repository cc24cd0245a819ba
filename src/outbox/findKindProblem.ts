import type { Database } from '../postgres/database.ts'
import { type OutboxTable, saysTaken } from './outboxTable.ts'

/** Tables and views that a view reads, quoted, with their schemas. */
export async function findTablesBelow(db: Database, qualified: string): Promise<string[]> {
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

/** What to read instead. @param kind pg_class.relkind @param below quoted, with their schemas */
export function describeInstead(kind: string, below: readonly string[]): string {
  if (kind === 'f') return 'let DATABASE_URL lead to the database where the table itself is'
  if (below.length === 0) return 'describe the table below it'
  return `describe the table below it (${below.map((name) => `outboxd describe '${name}'`).join(', or ')})`
}

/** What is no table of rows that transactions have written, by pg_class.relkind. */
export const kindNames: Readonly<Record<string, string>> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
}

/** Whether its rows must say that they are taken, since it does not show which transactions wrote them. @param kind pg_class.relkind */
export const needsMark = (kind: string): boolean => kindNames[kind] !== undefined

/**
 * What keeps the daemon from reading what is no table as it is described; null where nothing does. The ledger remembers rows by the
 * transactions that wrote them, which a view does not have, and a foreign table gives as 0: a row that is committed late would never
 * be read. A materialized view takes no mark either.
 *
 * @param kind pg_class.relkind
 */
export async function findKindProblem(
  db: Database,
  qualified: string,
  kind: string,
  table: OutboxTable,
): Promise<string | null> {
  if (!needsMark(kind) || (kind !== 'm' && saysTaken(table))) return null
  const other = describeInstead(kind, kind === 'f' ? [] : await findTablesBelow(db, qualified))
  if (kind === 'm') return `is ${kindNames[kind]}, in which no row can be locked or marked: ${other}`
  return `is ${kindNames[kind]}, whose rows have to be marked as they are taken, since it does not show by which transactions they were written: let it show a column that we can set then (state with set: [queued], or a value for queued), or ${other}`
}
