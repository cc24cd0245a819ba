import type pg from 'pg'
import { queueName, queueSchema } from '../storage/orderEvents.ts'

/** Reads long lists in batches of some megabytes, so that a slow reader holds neither memory nor a connection. */

const batchRows = 500
const batchBytes = 4_000_000

export interface Page {
  limit: number
  client: string | null
}

interface LedgerFilter extends Page {
  since: number
  endpoint: string | null
  idempotencyKey: string | null
}

const utcSql = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

export const transactionColumns = `
  client, id as "transactionId", customer_id as "customerId", ${utcSql('accepted_at')} as "acceptedAt",
  ${utcSql('done_at')} as "doneAt", held, outcome, error_code as "errorCode"`

export const orderColumns = `
  client, id as "orderId", customer_id as "customerId", items::text as items, ${utcSql('created_at')} as "createdAt",
  ${utcSql('done_at')} as "doneAt", held`

/** Bounds a query to `batchBytes`, at least one row. @param size SQL for the bytes of a row */
const boundedSql = (query: string, size: string, order: string) => `
  select * from (
    select *, row_number() over w as nth, sum(${size}) over w as bytes from (${query}) found window w as (order by ${order})
  ) batch
  where nth = 1 or bytes <= ${batchBytes}
  order by nth`

// biome-ignore lint/suspicious/noExplicitAny: rows are only passed on, except for the columns of their order
type Row = any

async function* inBatches(limit: number, read: (last: Row | undefined, rows: number) => Promise<Row[]>) {
  let last: Row | undefined
  for (let left = limit; left > 0; ) {
    const rows = await read(last, Math.min(left, batchRows))
    if (rows.length === 0) return
    yield rows.map(({ nth: _nth, bytes: _bytes, position: _position, ...row }) => JSON.stringify(row))
    last = rows.at(-1)
    left -= rows.length
  }
}

const isAskedFor = `
  sequence > $1 and ($2::text is null or client = $2) and ($3::text is null or endpoint = $3)
  and ($4::text is null or idempotency_key = $4)`

const ledgerBatchSql = boundedSql(
  `
  select sequence::double precision as sequence, ${utcSql('arrived_at')} as "arrivedAt", endpoint, method, path, client,
    address, idempotency_key as "idempotencyKey", body, status, dropped, counted,
    fault_id::double precision as "faultId", transaction_id as "transactionId", order_id as "orderId"
  from sandbox.ledger where ${isAskedFor} order by ledger.sequence limit $5`,
  'octet_length(body)',
  'sequence',
)

export function ledgerRows(pool: pg.Pool, filter: LedgerFilter): AsyncGenerator<string[]> {
  const { since, client, endpoint, idempotencyKey, limit } = filter
  return inBatches(limit, async (last, rows) => {
    const read = await pool.query(ledgerBatchSql, [last?.sequence ?? since, client, endpoint, idempotencyKey, rows])
    return read.rows
  })
}

/** Returns the sequence after which the newest `limit` requests of the filter begin. */
export async function findSequenceBeforeNewestRows(pool: pg.Pool, filter: LedgerFilter): Promise<number> {
  const { since, client, endpoint, idempotencyKey, limit } = filter
  const { rows } = await pool.query<{ before: number }>(
    `
    select coalesce(min(sequence) - 1, $1)::double precision as before
    from (select sequence from sandbox.ledger where ${isAskedFor} order by sequence desc limit $5) newest
    `,
    [since, client, endpoint, idempotencyKey, limit],
  )
  return rows[0]?.before ?? since
}

export function transactionRows(pool: pg.Pool, { limit, client }: Page): AsyncGenerator<string[]> {
  return inBatches(limit, async (last, rows) => {
    const read = await pool.query(
      `
      select ${transactionColumns}, position::double precision as position from sandbox.transactions
      where (accepted_at, position, id, client) > ($1::timestamptz, $2::bigint, $3, $4)
        and ($5::text is null or client = $5)
      order by accepted_at, transactions.position, id, client
      limit $6
      `,
      [
        last?.acceptedAt ?? '-infinity',
        last?.position ?? 0,
        last?.transactionId ?? '',
        last?.client ?? '',
        client,
        rows,
      ],
    )
    return read.rows
  })
}

const orderBatchSql = boundedSql(
  `
  select ${orderColumns}, position::double precision as position from sandbox.orders
  where (created_at, position, id, client) > ($1::timestamptz, $2::bigint, $3::uuid, $4)
    and ($5::text is null or client = $5)
  order by created_at, orders.position, id, client
  limit $6`,
  'octet_length(items)',
  '"createdAt", position, "orderId", client',
)

const firstUuid = '00000000-0000-0000-0000-000000000000'

export function orderRows(pool: pg.Pool, { limit, client }: Page): AsyncGenerator<string[]> {
  return inBatches(limit, async (last, rows) => {
    const after = [last?.createdAt ?? '-infinity', last?.position ?? 0, last?.orderId ?? firstUuid, last?.client ?? '']
    const read = await pool.query(orderBatchSql, [...after, client, rows])
    return read.rows
  })
}

const eventBatchSql = boundedSql(
  `
  select id, state::text as state, data::text as event, place
  from unnest($2::uuid[]) with ordinality as asked (id, place) join ${queueSchema}.job using (id)
  where job.name = $1`,
  'octet_length(event)',
  'place',
)

export async function* eventRows(pool: pg.Pool, { limit, client }: Page): AsyncGenerator<string[]> {
  const { rows: found } = await pool.query<{ ids: string[] }>(
    `
    select coalesce(array_agg(id::text order by created_on, id), '{}') as ids
    from (
      select id, created_on from ${queueSchema}.job -- of the system's clock: the sandbox's may stand
      where name = $1
        and ($3::text is null or exists (select from sandbox.orders o where o.event_id = job.id and o.client = $3))
      order by 2, 1
      limit $2
    ) first
    `,
    [queueName, limit, client],
  )
  const ids = found[0]?.ids ?? []
  for (let start = 0; start < ids.length; ) {
    const { rows } = await pool.query(eventBatchSql, [queueName, ids.slice(start, start + batchRows)])
    yield rows.map(({ id, state, event }) => `{"id":"${id}","state":"${state}","event":${event}}`)
    start += Number(rows.at(-1)?.place ?? batchRows) // no row: these events were deleted meanwhile
  }
}
