import type { Database } from '../postgres/database.ts'
import { type OutboxTable, saysTaken } from './outboxTable.ts'

/** Tables and views that a view reads, quoted, with their schemas. */
export async function findTablesBelow(db: Database, qualified: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct format('%I.%I', n.nspname, c.relname) as name
     from pg_rewrite r
       join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
       join pg_class c on c.oid = d.refobjid and c.oid <> r.ev_class and c.relkind in ('r', 'p', 'v', 'm', 'f')
       join pg_namespace n on n.oid = c.relnamespace
     where r.ev_class = to_regclass($1) order by name`,
    [qualified],
  )
  return rows.map(({ name }) => name)
}

/** The way out, as a command. @param below quoted, with their schemas */
export const describeBelow = (below: readonly string[]): string =>
  below.length === 0
    ? 'describe the table below it'
    : `describe the table below it (${below.map((name) => `outboxd describe '${name}'`).join(', or ')})`

/**
 * What keeps the daemon from reading a view as it is described; null where nothing does, or it is none. A view has no transactions
 * by which the ledger could put its rows in order, so its rows have to say that they are taken; a materialized one takes no mark.
 *
 * @param kind pg_class.relkind
 */
export async function findViewProblem(
  db: Database,
  qualified: string,
  kind: string,
  table: OutboxTable,
): Promise<string | null> {
  if (kind !== 'm' && (kind !== 'v' || saysTaken(table))) return null
  const other = describeBelow(await findTablesBelow(db, qualified))
  if (kind === 'm') return `is a materialized view, in which no row can be locked or marked: ${other}`
  return `is a view, whose rows have to be marked as they are taken, since it does not show by which transactions they were written: let it show a column that we can set then (state with set: [queued], or a value for queued), or ${other}`
}
