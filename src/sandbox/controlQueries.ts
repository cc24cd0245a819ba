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

/** The most API calls in any window: as they arrived, all clients together, and as they were admitted, for one client. */
export async function readRate(
  pool: pg.Pool,
  windowSeconds: number,
): Promise<{ windowSeconds: number; requests: number; maxArrived: number; maxAdmitted: number }> {
  // A range includes its far edge, and requests exactly one window apart are in no window together: one microsecond less.
  const { rows } = await pool.query<{ requests: number; max_arrived: number; max_admitted: number }>(
    `
    with arrivals as (
      select arrived_at, counted, coalesce(client, address) as client
      from sandbox.ledger where path like '/api/%'
    ), arrived as (
      select count(*) over (
        order by arrived_at range between ($1::bigint - 1) * interval '1 microsecond' preceding and current row
      ) as n from arrivals
    ), admitted as (
      select count(*) over (
        partition by client order by arrived_at
        range between ($1::bigint - 1) * interval '1 microsecond' preceding and current row
      ) as n from arrivals where counted
    )
    select (select count(*) from arrivals)::integer as requests,
      coalesce((select max(n) from arrived), 0)::integer as max_arrived,
      coalesce((select max(n) from admitted), 0)::integer as max_admitted
    `,
    [Math.round(windowSeconds * 1_000_000)],
  )
  const { requests = 0, max_arrived = 0, max_admitted = 0 } = rows[0] ?? {}
  return { windowSeconds, requests, maxArrived: max_arrived, maxAdmitted: max_admitted }
}

/** Forgets every request; with `everything`, also transactions, orders and events. */
export async function forget(pool: pg.Pool, everything: boolean): Promise<void> {
  await pool.query('truncate sandbox.ledger restart identity')
  if (!everything) return
  await pool.query('truncate sandbox.transactions, sandbox.orders')
  await pool.query(`delete from ${queueSchema}.job where name = $1`, [queueName])
}
