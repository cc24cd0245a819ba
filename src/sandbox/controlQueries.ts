import type pg from 'pg'
import { type QueuedEvent, queueName, queueSchema } from './orderEvents.ts'

/** What /_sandbox/ shows; the SQL behind it. Numbers in payloads stay text, or they would be rounded. */

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

export const transactionColumns = `
  id as "transactionId", customer_id as "customerId", ${utc('accepted_at')} as "acceptedAt",
  ${utc('done_at')} as "doneAt", held, outcome, error_code as "errorCode"`

export const orderColumns = `
  id as "orderId", customer_id as "customerId", items::text as items, ${utc('created_at')} as "createdAt",
  ${utc('done_at')} as "doneAt", held`

/** Which rows to show: those after `since`, at most `limit`, oldest first. */
export interface Page {
  since: number
  limit: number
}

export async function readLedger(
  pool: pg.Pool,
  { since, limit, endpoint, idempotencyKey }: Page & { endpoint: string | null; idempotencyKey: string | null },
): Promise<unknown[]> {
  const { rows } = await pool.query(
    `
    select sequence::double precision as sequence, ${utc('arrived_at')} as "arrivedAt", endpoint, method, path, client,
      address, idempotency_key as "idempotencyKey", body, status, dropped, counted,
      fault_id::double precision as "faultId", transaction_id as "transactionId", order_id as "orderId"
    from sandbox.ledger
    where sequence > $1 and ($3::text is null or endpoint = $3) and ($4::text is null or idempotency_key = $4)
    order by ledger.sequence
    limit $2
    `,
    [since, limit, endpoint, idempotencyKey],
  )
  return rows
}

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

export async function readTransactions(pool: pg.Pool, { limit }: { limit: number }): Promise<unknown[]> {
  const { rows } = await pool.query(
    `
    select ${transactionColumns} from sandbox.transactions order by accepted_at, id limit $1
    `,
    [limit],
  )
  return rows
}

/** Orders, newest last; `items` is JSON text. */
export async function readOrders(pool: pg.Pool, { limit }: { limit: number }): Promise<unknown[]> {
  const { rows } = await pool.query(
    `
    select ${orderColumns} from sandbox.orders order by created_at, id limit $1
    `,
    [limit],
  )
  return rows
}

/** The events on the queue, as lines of JSON, in the order in which they were put there. */
export async function readEventLines(pool: pg.Pool, { limit }: { limit: number }): Promise<string[]> {
  const { rows } = await pool.query<{ id: string; state: string; event: string }>(
    `
    select id, state::text as state, data::text as event from ${queueSchema}.job
    where name = $1
    order by data ->> 'time', id
    limit $2
    `,
    [queueName, limit],
  )
  return rows.map(({ id, state, event }) => `{"id":"${id}","state":"${state}","event":${event}}`)
}

export function eventLine(event: QueuedEvent['event']): string {
  return JSON.stringify({ id: event.id, state: 'created', event })
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
