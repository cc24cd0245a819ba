import type pg from 'pg'
import { queueName, queueSchemaName } from '../storage/orderEvents.ts'
import { timestampOfMicrosecondsSql } from '../storage/sandboxDatabase.ts'

export async function readRequestCounts(pool: pg.Pool, client: string | null): Promise<unknown[]> {
  const { rows } = await pool.query(
    `
    select endpoint, status, dropped, count(*)::integer as requests,
      count(coalesce(transaction_id, order_id::text))::integer as effects
    from sandbox.ledger
    where $1::text is null or client = $1
    group by 1, 2, 3
    order by 1, 2, 3
    `,
    [client],
  )
  return rows
}

export async function deleteAllRequests(pool: pg.Pool, alsoRecords: boolean): Promise<void> {
  await pool.query('truncate sandbox.ledger restart identity')
  if (!alsoRecords) return
  await pool.query('truncate sandbox.transactions, sandbox.orders')
  await pool.query(`delete from ${queueSchemaName}.job where name = $1`, [queueName])
}

export async function deleteClientRequests(pool: pg.Pool, client: string, alsoRecords: boolean): Promise<void> {
  await pool.query(
    `
    with ledger as (
      delete from sandbox.ledger where client = $1
    ), transactions as (
      delete from sandbox.transactions where $2 and client = $1
    ), events as (
      delete from ${queueSchemaName}.job
      where $2 and name = $3 and id in (select event_id from sandbox.orders where client = $1)
    )
    delete from sandbox.orders where $2 and client = $1
    `,
    [client, alsoRecords, queueName],
  )
}

/** Keeps the newest `rowsKept` requests, those with an applied idempotency key, and those that the limit counts. */
export async function deleteOldRequests(pool: pg.Pool, rowsKept: number, countedSinceUs: number): Promise<void> {
  await pool.query(
    `
    delete from sandbox.ledger
    where sequence <= (select max(sequence) from sandbox.ledger) - $1
      and not (idempotency_key is not null and (transaction_id is not null or order_id is not null))
      and not (counted and arrived_at > ${timestampOfMicrosecondsSql('$2::bigint')})
    `,
    [rowsKept, Math.round(countedSinceUs)],
  )
}

export interface RequestRate {
  windowSeconds: number
  requests: number
  maxArrived: number
  maxAdmitted: number
}

const windowSql = "range between $1::float8 * interval '1 microsecond' preceding and current row"

/** Finds the most API calls in a window. Two calls that are exactly one window apart share no window. */
export async function readRequestRate(
  pool: pg.Pool,
  windowSeconds: number,
  client: string | null,
): Promise<RequestRate> {
  const { rows } = await pool.query<Omit<RequestRate, 'windowSeconds'>>(
    `
    select count(*)::integer as requests, coalesce(max(arrived), 0)::integer as "maxArrived",
      coalesce(max(admitted), 0)::integer as "maxAdmitted"
    from (
      select count(*) over (order by arrived_at ${windowSql}) as arrived,
        count(*) filter (where counted) over (partition by coalesce(client, address) order by arrived_at ${windowSql})
          as admitted
      from sandbox.ledger
      where path like '/api/%' and ($2::text is null or client = $2)
    ) calls
    `,
    [Math.round(windowSeconds * 1_000_000) - 1, client],
  )
  return { windowSeconds, ...(rows[0] ?? { requests: 0, maxArrived: 0, maxAdmitted: 0 }) }
}
