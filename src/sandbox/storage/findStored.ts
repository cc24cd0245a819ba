import type pg from 'pg'
import type { ScriptStep } from '../scenario/scenarioSchema.ts'
import { epochMicrosecondsSql, replaceNulCharacters, timestampOfMicrosecondsSql } from './sandboxDatabase.ts'

export interface StoredRecord {
  id: string
  sinceUs: number
  doneUs: number
  /** If true, the record stays pending, even after `doneUs`. */
  held: boolean
  statuses: readonly ScriptStep[] | null
}

type StoredTransaction = StoredRecord & {
  customerId: string
  outcome: 'completed' | 'failed'
  errorCode: string | null
}
type StoredOrder = StoredRecord & { items: string }

const commonColumnsSql = (since: string) => `
  id, ${epochMicrosecondsSql(since)}::double precision as "sinceUs", ${epochMicrosecondsSql('done_at')}::double precision as "doneUs",
  held, statuses`

export async function findTransaction(pool: pg.Pool, client: string, id: string) {
  const { rows } = await pool.query<StoredTransaction>({
    name: 'sandbox-find-transaction',
    text: `
      select ${commonColumnsSql('accepted_at')}, customer_id as "customerId", outcome, error_code as "errorCode"
      from sandbox.transactions where id = $1 and client = $2
    `,
    values: [replaceNulCharacters(id), client],
  })
  return rows[0]
}

export async function findOrder(pool: pg.Pool, client: string, id: string) {
  const { rows } = await pool.query<StoredOrder>({
    name: 'sandbox-find-order',
    text: `
      select ${commonColumnsSql('created_at')}, items::text as items
      from sandbox.orders where id = $1 and client = $2
    `,
    values: [replaceNulCharacters(id), client],
  })
  return rows[0]
}

/** The first request with an idempotency key that was applied. */
export interface AppliedRequest {
  transactionId: string | null
  orderId: string | null
  sameRequest: boolean
  appliedUs: number
}

export async function findAppliedRequest(
  pool: pg.Pool,
  { idempotencyKey, client, endpoint, body }: Record<'idempotencyKey' | 'client' | 'endpoint' | 'body', string>,
): Promise<AppliedRequest | undefined> {
  const { rows } = await pool.query<AppliedRequest>({
    name: 'sandbox-find-applied',
    text: `
      select l.transaction_id as "transactionId", l.order_id as "orderId",
        l.endpoint = $3 and l.body = $4 as "sameRequest",
        ${epochMicrosecondsSql('coalesce(t.accepted_at, o.created_at, l.arrived_at)')}::double precision as "appliedUs"
      from sandbox.ledger l
        left join sandbox.transactions t on t.id = l.transaction_id and t.client = l.client
        left join sandbox.orders o on o.id = l.order_id and o.client = l.client
      where l.idempotency_key = $1 and l.client = $2 and (l.transaction_id is not null or l.order_id is not null)
      order by l.sequence
      limit 1
    `,
    values: [replaceNulCharacters(idempotencyKey), client, endpoint, replaceNulCharacters(body)],
  })
  return rows[0]
}

/** Returns the first free position in each client's random stream, so that no id is drawn twice. */
export async function readNextRandomPositionByClient(pool: pg.Pool): Promise<Map<string, number>> {
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

export interface CountedArrivals {
  /** Null for an unknown client, whose limit holds for the address. */
  client: string | null
  address: string
  arrivalsUs: number[]
}

export async function readCountedArrivals(pool: pg.Pool, sinceUs: number): Promise<CountedArrivals[]> {
  const { rows } = await pool.query<{ client: string | null; address: string; arrivals_us: string[] }>(
    `
      select client, case when client is null then address else '' end as address,
        array_agg(${epochMicrosecondsSql('arrived_at')} order by arrived_at)::text[] as arrivals_us
      from sandbox.ledger
      where counted and arrived_at > ${timestampOfMicrosecondsSql('$1::bigint')}
      group by 1, 2
    `,
    [Math.round(sinceUs)],
  )
  return rows.map(({ client, address, arrivals_us }) => ({ client, address, arrivalsUs: arrivals_us.map(Number) }))
}
