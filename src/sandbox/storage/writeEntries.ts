import pg from 'pg'
import { asAway, connect, DatabaseAway } from './databaseAway.ts'
import type { Effect, Entry, OrderEffect, TransactionEffect } from './journal.ts'
import type { OrderEvents } from './orderEvents.ts'
import { storable, time } from './sqlValues.ts'

/**
 * Writes requests and what they changed, in one commit; events too, where there are orders.
 *
 * One statement, so a batch without orders is one round trip.
 *
 * @throws DatabaseAway, which says whether it may be stored; pg's DatabaseError where the entries are at fault and surely are not
 */
export async function writeEntries(pool: pg.Pool, events: OrderEvents, entries: readonly Entry[]): Promise<void> {
  const orders = entries.flatMap(({ effect, row }) =>
    effect?.kind === 'order' ? [{ ...effect, client: row.client }] : [],
  )
  const client = await connect(pool)
  let isCommitting = orders.length === 0
  try {
    if (orders.length === 0) await client.query(writeStatement(entries, orders))
    else {
      await client.query('begin')
      await client.query(writeStatement(entries, orders))
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

function writeStatement(entries: readonly Entry[], orders: readonly Owned<OrderEffect>[]): pg.QueryConfig {
  const rows = entries.map(({ row }) => row)
  const transactions = entries.flatMap(({ effect, row }) =>
    effect?.kind === 'transaction' ? [{ ...effect, client: row.client }] : [],
  )
  return {
    name: 'sandbox-write-entries',
    text: `
      with new_transactions as (
        insert into sandbox.transactions (
          client, id, customer_id, accepted_at, done_at, outcome, error_code, position, statuses, held
        )
        select client, id, customer_id, ${time('accepted_us')}, ${time('done_us')}, outcome, error_code, position,
          statuses, statuses is not null
        from unnest(
          $1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $25::bigint[], $27::jsonb[],
          $29::text[]
        ) as t (id, customer_id, accepted_us, done_us, outcome, error_code, position, statuses, client)
      ), new_orders as (
        insert into sandbox.orders (
          client, id, customer_id, items, created_at, done_at, position, statuses, held, event_id
        )
        select client, id, customer_id, items, ${time('created_us')}, ${time('done_us')}, position,
          statuses, statuses is not null, event_id
        from unnest(
          $7::uuid[], $8::uuid[], $9::json[], $10::bigint[], $11::bigint[], $26::bigint[], $28::jsonb[],
          $30::text[], $31::uuid[]
        ) as o (id, customer_id, items, created_us, done_us, position, statuses, client, event_id)
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
      )
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
