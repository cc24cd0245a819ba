import type pg from 'pg'
import { begin, type Database, isLock } from '../postgres/database.ts'
import { codeOf } from '../postgres/sqlState.ts'

/** A statement of the daemon, by the name that the code has for it. */
export type NamedStatements = Readonly<Record<string, string>>

/**
 * Asks Postgres to plan each statement as our user, and run none: types that do not compare, columns, functions and rights
 * that are missing show. Each refusal once, with the statements that meet it.
 */
export async function findStatementProblems(pool: pg.Pool, statements: NamedStatements): Promise<string[]> {
  const refusals = new Map<string, string[]>()
  await using transaction = await begin(pool) // never committed
  await transaction.db.query(`set local lock_timeout = '2s'`)
  for (const [name, statement] of Object.entries(statements)) {
    const why = await explain(transaction.db, statement)
    if (why === 'locked') return [locked]
    if (why !== null) refusals.set(why, [...(refusals.get(why) ?? []), name])
  }
  return [...refusals].map(
    ([why, names]) => `would not let the daemon do its work: ${why} (in the statements ${names.join(', ')})`,
  )
}

/** Each statement would wait anew. */
const locked =
  'is locked by another session, so that we could not ask Postgres to plan our statements: outboxd status says whose lock that is'

/**
 * Prepared, since Postgres then says itself how many values there are and of which types; NULL will do for each.
 *
 * @returns why it would not run, null where it would; `locked`: nobody can say
 */
async function explain(db: Database, statement: string): Promise<string | null> {
  await db.query('savepoint explained')
  try {
    await db.query(`prepare ${prepared} as ${statement}`)
    const { rows } = await db.query<{ values: number }>(
      'select coalesce(cardinality(parameter_types), 0) as values from pg_prepared_statements where name = $1',
      [prepared],
    )
    const nulls = Array.from({ length: rows[0]?.values ?? 0 }, () => 'null')
    await db.query(`explain execute ${prepared}${nulls.length === 0 ? '' : `(${nulls.join(', ')})`}`)
    return null
  } catch (error) {
    await db.query('rollback to savepoint explained')
    if (isLock(error)) return 'locked'
    return `SQLSTATE ${codeOf(error)}: ${(error as Error).message}`
  } finally {
    await forget(db) // a rollback does not
  }
}

const prepared = 'outboxd_check'

async function forget(db: Database): Promise<void> {
  const { rowCount } = await db.query('select from pg_prepared_statements where name = $1', [prepared])
  if ((rowCount ?? 0) > 0) await db.query(`deallocate ${prepared}`)
}
