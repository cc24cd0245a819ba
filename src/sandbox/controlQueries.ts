import type pg from 'pg'
import { queueName, queueSchema } from './orderEvents.ts'

/** What /_sandbox/ counts and forgets; the SQL behind it. */

/** How many requests there were, by endpoint and answer, and how many of them changed something. */
export async function readCounts(pool: pg.Pool): Promise<unknown[]> {
  const { rows } = await pool.query(`
    select endpoint, status, dropped, count(*)::integer as requests,
      count(coalesce(transaction_id, order_id::text))::integer as effects
    from sandbox.ledger
    group by 1, 2, 3
    order by 1, 2, 3
  `)
  return rows
}

/** Forgets every request; with `everything`, also transactions, orders and events. */
export async function forget(pool: pg.Pool, everything: boolean): Promise<void> {
  await pool.query('truncate sandbox.ledger restart identity')
  if (!everything) return
  await pool.query('truncate sandbox.transactions, sandbox.orders')
  await pool.query(`delete from ${queueSchema}.job where name = $1`, [queueName])
}
