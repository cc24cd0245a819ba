import type pg from 'pg'

/** What the page at /_sandbox/ shows of the tables: the newest rows, each cut to what a reader takes in. */

export interface SeenRequest {
  sequence: number
  arrivedAt: string
  method: string
  path: string
  client: string | null
  idempotencyKey: string | null
  body: string
  /** Null where the connection was dropped. */
  status: number | null
  faultId: number | null
  /** The transaction or the order that it created. */
  effect: string | null
}

export interface SeenTransaction {
  client: string
  /** Which half of the service, as its control path says it. */
  kind: 'transactions' | 'orders'
  id: string
  customerId: string
  acceptedAt: string
  doneAt: string
  held: boolean
  outcome: string
  errorCode: string | null
}

const rowsMax = 50
const bodyCharactersMax = 4000

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')`

/** Requests, newest first. @param client whose; null: all */
export async function readNewestRequests(pool: pg.Pool, client: string | null): Promise<SeenRequest[]> {
  const { rows } = await pool.query<SeenRequest>(
    `
    select sequence::double precision as sequence, ${utc('arrived_at')} as "arrivedAt", method, left(path, 200) as path, client,
      idempotency_key as "idempotencyKey", left(body, $2) as body, status, fault_id::double precision as "faultId",
      coalesce(transaction_id, order_id::text) as effect
    from sandbox.ledger where $3::text is null or client = $3 order by ledger.sequence desc limit $1
    `,
    [rowsMax, bodyCharactersMax, client],
  )
  return rows.map((row) => ({ ...row, body: row.body ?? '' }))
}

/** Transactions and orders, newest first. @param client whose; null: all */
export async function readNewestTransactions(pool: pg.Pool, client: string | null): Promise<SeenTransaction[]> {
  const { rows } = await pool.query<SeenTransaction>(
    `
    select client, kind, id, "customerId", ${utc('accepted_at')} as "acceptedAt", ${utc('done_at')} as "doneAt", held, outcome, "errorCode"
    from (
      (select client, 'transactions' as kind, id, customer_id as "customerId", accepted_at, done_at, held, outcome, error_code as "errorCode"
      from sandbox.transactions where $2::text is null or client = $2 order by accepted_at desc limit $1)
      union all
      (select client, 'orders', id::text, customer_id::text, created_at, done_at, held, 'completed', null
      from sandbox.orders where $2::text is null or client = $2 order by created_at desc limit $1)
    ) accepted
    order by accepted_at desc, id limit $1
    `,
    [rowsMax, client],
  )
  return rows
}
