import type pg from 'pg'
import { queueName, queueSchemaName } from '../storage/orderEvents.ts'

interface Page {
  limit: number
  client: string | null
}

interface RequestLogFilter extends Page {
  since: number
  isNewest: boolean
  endpoint: string | null
  idempotencyKey: string | null
}

export interface RowsPage {
  /** Each row as JSON text. */
  rows: string[]
  /** True if rows beyond `pageBytesMax` bytes were left out. */
  isCut: boolean
}

export const pageBytesMax = 64_000_000

const utcSql = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

export const columnsOfTransactionsSql = `
  client, id as "transactionId", customer_id as "customerId", ${utcSql('accepted_at')} as "acceptedAt",
  ${utcSql('done_at')} as "doneAt", held, outcome, error_code as "errorCode"`

export const columnsOfOrdersSql = `
  client, id as "orderId", customer_id as "customerId", items::text as items, ${utcSql('created_at')} as "createdAt",
  ${utcSql('done_at')} as "doneAt", held`

interface List {
  schema?: string
  table: string
  columns: string
  where: string
  order: readonly string[]
  direction?: 'desc'
}

/** @param values the values of the parameters in `where`, followed by the limit */
async function readPage(pool: pg.Pool, list: List, values: unknown[]): Promise<RowsPage> {
  const { schema = 'sandbox', table, columns, where, order, direction = '' } = list
  const ordered = order.map((column) => `${table}.${column}`)
  const { rows } = await pool.query<{ row: string; isWithin: boolean }>(
    `
    select row, nth = 1 or bytes <= ${pageBytesMax} as "isWithin"
    from (
      select row, row_number() over places as nth, sum(octet_length(row)) over places as bytes
      from (
        select row_to_json(shown)::text as row, (${ordered.join()}) as place
        from ${schema}.${table} cross join lateral (select ${columns}) shown
        where ${where}
        order by ${ordered.map((column) => `${column} ${direction}`).join()}
        limit $${values.length}
      ) found
      window places as (order by place)
    ) measured
    where nth = 1 or bytes - octet_length(row) <= ${pageBytesMax}
    order by nth
    `,
    values,
  )
  const within = rows.filter(({ isWithin }) => isWithin)
  return { rows: within.map(({ row }) => row), isCut: within.length < rows.length }
}

const columnsOfRequestsSql = `
  sequence, ${utcSql('arrived_at')} as "arrivedAt", endpoint, method, path, client, address,
  idempotency_key as "idempotencyKey", body, status, dropped, counted, fault_id as "faultId",
  transaction_id as "transactionId", order_id as "orderId"`

export function readRequestLog(pool: pg.Pool, filter: RequestLogFilter): Promise<RowsPage> {
  const { since, isNewest, client, endpoint, idempotencyKey, limit } = filter
  const where = `
    ledger.sequence > $1 and ($2::text is null or ledger.client = $2) and ($3::text is null or ledger.endpoint = $3)
    and ($4::text is null or ledger.idempotency_key = $4)`
  return readPage(
    pool,
    {
      table: 'ledger',
      columns: columnsOfRequestsSql,
      where,
      order: ['sequence'],
      ...(isNewest ? { direction: 'desc' } : {}),
    },
    [since, client, endpoint, idempotencyKey, limit],
  )
}

export function readTransactions(pool: pg.Pool, { limit, client }: Page): Promise<RowsPage> {
  const where = '$1::text is null or transactions.client = $1'
  const order = ['accepted_at', 'position', 'id', 'client']
  return readPage(pool, { table: 'transactions', columns: columnsOfTransactionsSql, where, order }, [client, limit])
}

export function readOrders(pool: pg.Pool, { limit, client }: Page): Promise<RowsPage> {
  const where = '$1::text is null or orders.client = $1'
  const order = ['created_at', 'position', 'id', 'client']
  return readPage(pool, { table: 'orders', columns: columnsOfOrdersSql, where, order }, [client, limit])
}

export function readEvents(pool: pg.Pool, { limit, client }: Page): Promise<RowsPage> {
  const where = `
    job.name = $1
    and ($2::text is null or exists (select from sandbox.orders o where o.event_id = job.id and o.client = $2))`
  // Orders by created_on, the system's time, because the sandbox's clock may stand still.
  const list = {
    schema: queueSchemaName,
    table: 'job',
    columns: 'id, state, data as event',
    where,
    order: ['created_on', 'id'],
  }
  return readPage(pool, list, [queueName, client, limit])
}
