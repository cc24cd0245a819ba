import type pg from 'pg'
import type { Step } from '../scenario/scenarioSchema.ts'
import { storable, time, us } from './sqlValues.ts'

export interface StoredTransaction {
  id: string
  customerId: string
  acceptedUs: number
  doneUs: number
  /** Pending, whatever doneUs says. */
  held: boolean
  /** What polls find, where it goes by a script. */
  statuses: readonly Step[] | null
  outcome: 'completed' | 'failed'
  errorCode: string | null
}

export async function findTransaction(
  pool: pg.Pool,
  client: string,
  id: string,
): Promise<StoredTransaction | undefined> {
  const { rows } = await pool.query({
    name: 'sandbox-find-transaction',
    text: `
      select id, customer_id, ${us('accepted_at')} as accepted_us, ${us('done_at')} as done_us, held, statuses, outcome,
        error_code
      from sandbox.transactions where id = $1 and client = $2
    `,
    values: [storable(id), client],
  })
  const [row] = rows
  if (row === undefined) return undefined
  const { customer_id: customerId, accepted_us, done_us, held, statuses, outcome, error_code: errorCode } = row
  const [acceptedUs, doneUs] = [Number(accepted_us), Number(done_us)]
  return { id: row.id, customerId, acceptedUs, doneUs, held, statuses, outcome, errorCode }
}

export interface StoredOrder {
  id: string
  /** JSON text. */
  items: string
  createdUs: number
  doneUs: number
  /** Pending, whatever doneUs says. */
  held: boolean
  /** What polls find, where it goes by a script. */
  statuses: readonly Step[] | null
}

export async function findOrder(pool: pg.Pool, client: string, id: string): Promise<StoredOrder | undefined> {
  const { rows } = await pool.query({
    name: 'sandbox-find-order',
    text: `
      select id, items::text as items, ${us('created_at')} as created_us, ${us('done_at')} as done_us, held, statuses
      from sandbox.orders where id = $1 and client = $2
    `,
    values: [id, client],
  })
  const [row] = rows
  if (row === undefined) return undefined
  const { items, created_us, done_us, held, statuses } = row
  return { id: row.id, items, createdUs: Number(created_us), doneUs: Number(done_us), held, statuses }
}

/** The request that first used an idempotency key and was applied. */
export interface AppliedBefore {
  transactionId: string | null
  orderId: string | null
  sameRequest: boolean
  appliedUs: number
}

export async function findApplied(
  pool: pg.Pool,
  request: { idempotencyKey: string; client: string; endpoint: string; body: string },
): Promise<AppliedBefore | undefined> {
  const { rows } = await pool.query({
    name: 'sandbox-find-applied',
    text: `
      select l.transaction_id, l.order_id, l.endpoint = $3 and l.body = $4 as same_request,
        ${us('coalesce(t.accepted_at, o.created_at, l.arrived_at)')} as applied_us
      from sandbox.ledger l
        left join sandbox.transactions t on t.id = l.transaction_id and t.client = l.client
        left join sandbox.orders o on o.id = l.order_id and o.client = l.client
      where l.idempotency_key = $1 and l.client = $2 and (l.transaction_id is not null or l.order_id is not null)
      order by l.sequence
      limit 1
    `,
    values: [storable(request.idempotencyKey), request.client, request.endpoint, storable(request.body)],
  })
  const [row] = rows
  if (row === undefined) return undefined
  return {
    transactionId: row.transaction_id,
    orderId: row.order_id,
    sameRequest: row.same_request,
    appliedUs: Number(row.applied_us),
  }
}

/** For each client, the first position in its stream of draws that is free: an id is not drawn twice. */
export async function nextPositions(pool: pg.Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ client: string; next: string }>(`
    select client, coalesce(max(position), -1) + 1 as next
    from (
      select client, position from sandbox.transactions
      union all select client, position from sandbox.orders
    ) stored
    group by client
  `)
  return new Map(rows.map(({ client, next }) => [client, Number(next)]))
}

/** Of whom requests were admitted, and when, in order of time. */
export interface CountedArrivals {
  /** Null where no client was known: then by the address. */
  client: string | null
  address: string
  arrivalsUs: number[]
}

/** What was admitted after `sinceUs` and up to `untilUs`. */
export async function countedArrivals(pool: pg.Pool, sinceUs: number, untilUs: number): Promise<CountedArrivals[]> {
  const { rows } = await pool.query<{ client: string | null; address: string; arrivals_us: string[] }>(
    `
      select client, case when client is null then address else '' end as address,
        array_agg(${us('arrived_at')} order by arrived_at)::text[] as arrivals_us
      from sandbox.ledger
      where counted and arrived_at > ${time('$1::bigint')} and arrived_at <= ${time('$2::bigint')}
      group by 1, 2
    `,
    [sinceUs, untilUs],
  )
  return rows.map(({ client, address, arrivals_us }) => ({ client, address, arrivalsUs: arrivals_us.map(Number) }))
}

/** Gives the client what a database holds from before clients owned what they made. */
export async function adopt(pool: pg.Pool, client: string): Promise<void> {
  await pool.query("update sandbox.transactions set client = $1 where client = ''", [client])
  await pool.query("update sandbox.orders set client = $1 where client = ''", [client])
}
