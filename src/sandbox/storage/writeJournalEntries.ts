import pg from 'pg'
import type { Effect, Entry } from './journal.ts'
import type { OrderEvents } from './orderEvents.ts'
import {
  DatabaseAway,
  replaceNulCharacters,
  takeConnection,
  timeOfMicrosecondsSql,
  wrapAsDatabaseAway,
} from './sandboxDatabase.ts'

/**
 * Writes requests, effects and events in one commit, and in one round trip if there are no orders.
 *
 * @throws DatabaseAway; pg's DatabaseError if an entry is the cause and nothing is stored
 */
export async function writeJournalEntries(
  pool: pg.Pool,
  events: OrderEvents,
  entries: readonly Entry[],
): Promise<void> {
  const created = entries.flatMap(({ effect }) => (effect?.kind === 'order' ? [effect.event] : []))
  const statement = { name: 'sandbox-write-entries', text: writeEntriesSql, values: valuesOf(entries) }
  const client = await takeConnection(pool)
  let isCommitting = created.length === 0
  try {
    if (created.length === 0) await client.query(statement)
    else {
      await client.query('begin')
      await client.query(statement)
      await events.put(client, created)
      isCommitting = true
      await client.query('commit')
    }
    client.release()
  } catch (error) {
    await undo(client, error)
    throw wrapAsDatabaseAway(error, isCommitting)
  }
}

/** Drops a session that does not answer, so that Postgres rolls back. */
async function undo(client: pg.PoolClient, error: unknown): Promise<void> {
  const isAlive = error instanceof pg.DatabaseError || error instanceof DatabaseAway
  const undone = isAlive && client.query('rollback').catch(() => false)
  client.release((await undone) === false)
}

/** Passes items as text and stores json, which keeps their digits. */
const writeEntriesSql = `
  with new_transactions as (
    insert into sandbox.transactions (
      client, id, customer_id, accepted_at, done_at, outcome, error_code, position, statuses, held
    )
    select client, id, "customerId", ${timeOfMicrosecondsSql('"acceptedUs"')}, ${timeOfMicrosecondsSql('"doneUs"')}, outcome, "errorCode", position,
      statuses, statuses is not null
    from json_to_recordset($2) as t (
      client text, id text, "customerId" text, "acceptedUs" bigint, "doneUs" bigint, outcome text, "errorCode" text,
      position bigint, statuses jsonb
    )
  ), new_orders as (
    insert into sandbox.orders (
      client, id, customer_id, items, created_at, done_at, position, statuses, held, event_id
    )
    select client, id, "customerId", items::json, ${timeOfMicrosecondsSql('"createdUs"')}, ${timeOfMicrosecondsSql('"doneUs"')}, position,
      statuses, statuses is not null, "eventId"
    from json_to_recordset($3) as o (
      client text, id uuid, "customerId" uuid, items text, "createdUs" bigint, "doneUs" bigint,
      position bigint, statuses jsonb, "eventId" uuid
    )
  ), hits as (
    update sandbox.faults f set hits = hits + entry.n
    from (select "faultId", count(*) as n from json_to_recordset($1) as l ("faultId" bigint) group by 1) entry
    where f.id = entry."faultId"
  )
  insert into sandbox.ledger (
    arrived_at, endpoint, method, path, client, address, idempotency_key, body,
    status, dropped, counted, fault_id, transaction_id, order_id
  )
  select ${timeOfMicrosecondsSql('"arrivedUs"')}, endpoint, method, path, client, address, "idempotencyKey", body,
    status, status is null, counted, "faultId", "transactionId", "orderId"
  from rows from (json_to_recordset($1) as (
    "arrivedUs" bigint, endpoint text, method text, path text, client text, address text, "idempotencyKey" text,
    body text, status integer, counted boolean, "faultId" bigint, "transactionId" text, "orderId" uuid
  )) with ordinality as l (
    "arrivedUs", endpoint, method, path, client, address, "idempotencyKey",
    body, status, counted, "faultId", "transactionId", "orderId", place
  )
  order by place
`

function valuesOf(entries: readonly Entry[]): string[] {
  const ofKind = <K extends Effect['kind']>(kind: K) =>
    entries.flatMap(({ row: { client }, effect }) =>
      effect?.kind === kind ? [{ client, ...(effect as Extract<Effect, { kind: K }>) }] : [],
    )
  const ledger = entries.map(({ row, effect }) => ({
    ...row,
    path: replaceNulCharacters(row.path),
    client: replaceNulCharacters(row.client),
    idempotencyKey: replaceNulCharacters(row.idempotencyKey),
    body: replaceNulCharacters(row.body),
    transactionId: effect?.kind === 'transaction' ? effect.id : null,
    orderId: effect?.kind === 'order' ? effect.id : null,
  }))
  const orders = ofKind('order').map(({ event, ...order }) => ({ ...order, eventId: event.id }))
  return [ledger, ofKind('transaction'), orders].map((rows) => JSON.stringify(rows))
}
