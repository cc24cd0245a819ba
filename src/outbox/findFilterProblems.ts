import type pg from 'pg'
import { begin, rolePathOf } from '../postgres/database.ts'
import { codeOf } from '../postgres/sqlState.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import type { OutboxTable } from './outboxTable.ts'
import { saysTaken } from './outboxTable.ts'

/**
 * What is wrong with a filter where the ledger remembers how far the table was read. A row for which the filter comes
 * true with time (`not_before <= now()`) is not written then: the position has passed it, and nobody would ever look at it
 * again. So the filter must depend on the row alone, as the predicate of a partial index must: Postgres is asked
 * whether it would take it for one, on an empty copy of the table, in a transaction that is rolled back.
 */
export async function findFilterProblems(
  pool: pg.Pool,
  qualified: string,
  table: OutboxTable,
  columns: Iterable<string>,
): Promise<string[]> {
  const { filter } = table
  if (filter === null || saysTaken(table)) return []
  await using transaction = await begin(rolePathOf(pool))
  const { db } = transaction
  try {
    // "o" is what rows are called in our statements, so a filter may call them so.
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
    if (codeOf(error) !== notImmutable)
      return [`cannot be read with its filter: ${(error as Error).message}${didYouMeanColumn(error, columns)}`]
    await db.query('rollback to savepoint asked')
    await db.query(`create temporary view filtered as select from pg_temp.o where (${filter}\n)`)
    await db.query('set local search_path = pg_catalog, pg_temp')
    const { rows } = await db.query<{ name: string }>(changingParts)
    return [problem(rows.map(({ name }) => name))]
  }
}

/** 42703, undefined_column. Postgres says which: column "relaesed" does not exist. */
function didYouMeanColumn(error: unknown, columns: Iterable<string>): string {
  const missing =
    codeOf(error) === '42703' ? /column (?:o\.)?"?([^"]+?)"? does not exist/.exec(String(error))?.[1] : null
  return missing ? didYouMean(missing, columns) : ''
}

/** 42P17, invalid_object_definition: "functions in index predicate must be marked IMMUTABLE". */
const notImmutable = '42P17'

/** No right to create temporary tables or to copy this one, or a standby: then words that tell the time are looked for. */
const mayNotCreate = (error: unknown) => ['42501', '25006', '0A000', '42809'].some((code) => code === codeOf(error))
const timeMessage =
  /\b(now|current_date|current_time|current_timestamp|localtime|localtimestamp|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|random|age)\b/gi

/** The functions of a view that may give another value another time, by the tree that Postgres keeps of it. */
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
  return `has a filter that depends on more than the row (${which}): a row for which it comes true with time would never be found, since the ledger remembers how far the table was read. Mark rows as they are taken (set: [queued]), or let the ERP write a column when the time has come`
}
