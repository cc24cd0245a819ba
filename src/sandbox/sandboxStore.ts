import pg from 'pg'
import { asAway, connect, DatabaseAway } from './databaseAway.ts'
import type { Effect, Entry, OrderEffect, TransactionEffect } from './journal.ts'
import type { OrderEvents } from './orderEvents.ts'
import type { Step } from './scenario/scenarioSchema.ts'

/** All the sandbox's SQL on its path from request to answer. Times go in as microseconds and come out so. */

/** timestamptz to microseconds since 1970, exactly: extract() gives a numeric. */
export const us = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint`

/** Microseconds to timestamptz; the product is exact for the next two centuries (below 2^53). */
export const time = (column: string) => `timestamptz 'epoch' + ${column} * interval '1 microsecond'`

/**
 * Writes requests and what they changed, in one commit; events too, where there are orders.
 *
 * One statement, so a batch without orders is one round trip.
 *
 * @param term the writer's; nothing is written where another sandbox has begun since
 * @throws DatabaseAway, which says whether it may be stored; pg's DatabaseError where the entries are at fault and surely are not
 */
export async function writeEntries(
  pool: pg.Pool,
  events: OrderEvents,
  entries: readonly Entry[],
  term: number,
): Promise<void> {
  const orders = entries.flatMap(({ effect, row }) =>
    effect?.kind === 'order' ? [{ ...effect, client: row.client }] : [],
  )
  const client = await connect(pool)
  let isCommitting = orders.length === 0
  try {
    if (orders.length === 0) await writeUnderTerm(client, entries, orders, term)
    else {
      await client.query('begin')
      await writeUnderTerm(client, entries, orders, term)
      await events.put(
        client,
        orders.map(({ event }) => event),
      )
      isCommitting = true
      await client.query('commit')
    }
    client.release()
  } catch (error) {
    await undo(client, error)
    throw asAway(error, isCommitting)
  }
  if (orders.length > 0) events.announce(orders.map(({ client, event }) => ({ client, event })))
}

async function writeUnderTerm(
  client: pg.PoolClient,
  entries: readonly Entry[],
  orders: readonly Owned<OrderEffect>[],
  term: number,
): Promise<void> {
  const { rowCount } = await client.query(writeStatement(entries, orders, term))
  if (rowCount === 0) throw new DatabaseAway('another sandbox serves it by now', false)
}

/** A session that did not answer is given up, which undoes all that it has not committed. */
async function undo(client: pg.PoolClient, error: unknown): Promise<void> {
  const isAlive = error instanceof pg.DatabaseError || error instanceof DatabaseAway
  const isUndone =
    isAlive &&
    (await client.query('rollback').then(
      () => true,
      () => false,
    ))
  client.release(!isUndone)
}

type Owned<E> = E & { client: string | null }

function writeStatement(
  entries: readonly Entry[],
  orders: readonly Owned<OrderEffect>[],
  term: number,
): pg.QueryConfig {
  const rows = entries.map(({ row }) => row)
  const transactions = entries.flatMap(({ effect, row }) =>
    effect?.kind === 'transaction' ? [{ ...effect, client: row.client }] : [],
  )
  return {
    name: 'sandbox-write-entries',
    text: `
      with serving as materialized (
        -- Locked, so that whoever begins a term waits for this write, and it sees a term that has just begun.
        select 1 from sandbox.state where name = 'serving' and value = to_jsonb($27::integer) for share
      ), new_transactions as (
        insert into sandbox.transactions (
          client, id, customer_id, accepted_at, done_at, outcome, error_code, position, statuses, held
        )
        select client, id, customer_id, ${time('accepted_us')}, ${time('done_us')}, outcome, error_code, position,
          statuses, statuses is not null
        from unnest(
          $1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $25::bigint[], $28::jsonb[],
          $30::text[]
        ) as t (id, customer_id, accepted_us, done_us, outcome, error_code, position, statuses, client), serving
      ), new_orders as (
        insert into sandbox.orders (
          client, id, customer_id, items, created_at, done_at, position, statuses, held, event_id
        )
        select client, id, customer_id, items, ${time('created_us')}, ${time('done_us')}, position,
          statuses, statuses is not null, event_id
        from unnest(
          $7::uuid[], $8::uuid[], $9::json[], $10::bigint[], $11::bigint[], $26::bigint[], $29::jsonb[],
          $31::text[], $32::uuid[]
        ) as o (id, customer_id, items, created_us, done_us, position, statuses, client, event_id), serving
      )
      insert into sandbox.ledger (
        arrived_at, endpoint, method, path, client, address, idempotency_key, body,
        status, dropped, counted, fault_id, transaction_id, order_id
      )
      select ${time('arrived_us')}, endpoint, method, path, client, address, idempotency_key, body,
        status, status is null, counted, fault_id, transaction_id, order_id
      from unnest(
        $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[],
        $20::integer[], $21::boolean[], $22::bigint[], $23::text[], $24::uuid[]
      ) with ordinality as l (
        arrived_us, endpoint, method, path, client, address, idempotency_key, body,
        status, counted, fault_id, transaction_id, order_id, place
      ), serving
      order by place
    `,
    values: [
      ...transactionColumns(transactions),
      ...orderColumns(orders),
      rows.map((row) => row.arrivedUs),
      rows.map((row) => row.endpoint),
      rows.map((row) => row.method),
      rows.map((row) => storable(row.path)),
      rows.map((row) => storable(row.client)),
      rows.map((row) => row.address),
      rows.map((row) => storable(row.idempotencyKey)),
      rows.map((row) => storable(row.body)),
      rows.map((row) => row.status),
      rows.map((row) => row.counted),
      rows.map((row) => row.faultId),
      entries.map(({ effect }) => (effect?.kind === 'transaction' ? effect.id : null)),
      entries.map(({ effect }) => (effect?.kind === 'order' ? effect.id : null)),
      transactions.map((each) => each.position),
      orders.map((each) => each.position),
      term,
      transactions.map((each) => statusesText(each)),
      orders.map((each) => statusesText(each)),
      transactions.map((each) => each.client),
      orders.map((each) => each.client),
      orders.map((each) => each.event.id),
    ],
  }
}

function statusesText({ statuses }: Pick<Effect, 'statuses'>): string | null {
  return statuses && JSON.stringify(statuses)
}

function transactionColumns(transactions: readonly Owned<TransactionEffect>[]): unknown[][] {
  return [
    transactions.map((each) => each.id),
    transactions.map((each) => each.customerId),
    transactions.map((each) => each.acceptedUs),
    transactions.map((each) => each.doneUs),
    transactions.map((each) => each.outcome),
    transactions.map((each) => each.errorCode),
  ]
}

function orderColumns(orders: readonly Owned<OrderEffect>[]): unknown[][] {
  return [
    orders.map((each) => each.id),
    orders.map((each) => each.customerId),
    orders.map((each) => each.items),
    orders.map((each) => each.createdUs),
    orders.map((each) => each.doneUs),
  ]
}

/** Postgres stores every character but this one. */
function storable(text: string | null): string | null {
  return text?.replaceAll('\u0000', '\ufffd') ?? null
}

export interface StoredTransaction {
  id: string
  customerId: string
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
      select id, customer_id, ${us('done_at')} as done_us, held, statuses, outcome, error_code
      from sandbox.transactions where id = $1 and client = $2
    `,
    values: [storable(id), client],
  })
  const [row] = rows
  if (row === undefined) return undefined
  const { customer_id: customerId, done_us, held, statuses, outcome, error_code: errorCode } = row
  return { id: row.id, customerId, doneUs: Number(done_us), held, statuses, outcome, errorCode }
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
