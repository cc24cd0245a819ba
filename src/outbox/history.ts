import type pg from 'pg'
import { begin } from '../postgres/database.ts'
import { wasCanceled } from '../postgres/sqlState.ts'

/** The rows that waited before the first one was ever captured. */
export interface OutboxHistory {
  rows: number
  /** Whether `rows` is the planner's guess, for to count them would take longer than a moment. */
  isEstimate: boolean
  /** created_at, ISO 8601; null where the table does not say, or to find out would take longer than a moment. */
  oldest: string | null
  newest: string | null
}

const countMs = 1_500

/**
 * Counts the rows that wait, within about two seconds.
 *
 * @param from the table, with the alias o
 * @param waits which rows wait
 * @param createdAt their time as text that sorts
 */
export async function readHistory(
  pool: pg.Pool,
  { from, waits, createdAt }: { from: string; waits: string; createdAt: string },
): Promise<OutboxHistory> {
  try {
    await using transaction = await begin(pool)
    await transaction.db.query(`set local statement_timeout = ${countMs}`)
    const { rows } = await transaction.db.query<Omit<OutboxHistory, 'isEstimate'>>(
      `select count(*)::float8 as rows, min(${createdAt}) as oldest, max(${createdAt}) as newest from ${from} where ${waits}`,
    )
    return { ...(rows[0] as (typeof rows)[0]), isEstimate: false }
  } catch (error) {
    if (!wasCanceled(error)) throw error
    const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
      `explain (format json) select from ${from} where ${waits}`,
    )
    return { rows: rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0, isEstimate: true, oldest: null, newest: null }
  }
}
