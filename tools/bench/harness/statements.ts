import type { BenchDatabase } from './postgres.ts'
import { printTable } from './report.ts'

/** A statement in pg_stat_statements, shortened. */
export interface Statement {
  query: string
  calls: number
  ms: number
}

export async function forgetStatements({ pool }: BenchDatabase): Promise<void> {
  await pool.query('select pg_stat_statements_reset(0, oid, 0) from pg_database where datname = current_database()')
}

/** Reads the statements since they were forgotten, by their time. @param user only statements of this role */
export async function readStatements({ pool }: BenchDatabase, user?: string): Promise<Statement[]> {
  const { rows } = await pool.query<Statement>(
    `select left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query, calls::float8 as calls, total_exec_time as ms
     from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())
       and userid = coalesce($1::regrole, userid::regrole) and toplevel and query not like '%pg_stat_%'
     order by total_exec_time desc`,
    [user ?? null],
  )
  return rows
}

export function printStatements(title: string, statements: readonly Statement[]): void {
  printTable(
    [title, 'calls', 'ms'],
    statements.map(({ query, calls, ms }) => [query.replaceAll('|', '¦'), String(calls), ms.toFixed(1)]),
  )
}
