import type pg from 'pg'
import { numberDigitsMax } from '../endpoints/parseExactly.ts'
import { queueName, queueSchema } from '../storage/orderEvents.ts'

/**
 * The long lists of /_sandbox/, as JSON text, a batch at a time: each batch is a query of its own and holds some megabytes at
 * most (or one row), so that neither large bodies nor a slow reader cost memory or a connection. Numbers stay as they came.
 */

const batchRows = 500
const batchBytes = 4_000_000

/** How many, and whose; null for all. */
export interface Page {
  limit: number
  client: string | null
}

export interface LedgerFilter extends Page {
  /** Rows after this sequence. */
  since: number
  endpoint: string | null
  idempotencyKey: string | null
}

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

export const transactionColumns = `
  client, id as "transactionId", customer_id as "customerId", ${utc('accepted_at')} as "acceptedAt",
  ${utc('done_at')} as "doneAt", held, outcome, error_code as "errorCode"`

export const orderColumns = `
  client, id as "orderId", customer_id as "customerId", items::text as items, ${utc('created_at')} as "createdAt",
  ${utc('done_at')} as "doneAt", held`

/** Requests, oldest first. */
export async function* ledgerRows(pool: pg.Pool, filter: LedgerFilter): AsyncGenerator<string[]> {
  let after = filter.since
  for (let left = filter.limit; left > 0; ) {
    const { rows } = await pool.query(
      `
      select sequence::double precision as sequence, ${utc('arrived_at')} as "arrivedAt", endpoint, method, path, client,
        address, idempotency_key as "idempotencyKey", body, status, dropped, counted,
        fault_id::double precision as "faultId", transaction_id as "transactionId", order_id as "orderId"
      from (
        select *, row_number() over w as place, sum(octet_length(body)) over w as bytes
        from (
          select * from sandbox.ledger
          where sequence > $1 and ($3::text is null or endpoint = $3) and ($4::text is null or idempotency_key = $4)
            and ($6::text is null or client = $6)
          order by sequence
          limit $2
        ) found
        window w as (order by sequence)
      ) batch
      where place = 1 or bytes <= $5
      order by batch.sequence
      `,
      [after, Math.min(left, batchRows), filter.endpoint, filter.idempotencyKey, batchBytes, filter.client],
    )
    if (rows.length === 0) return
    yield rows.map((row) => JSON.stringify(row))
    after = rows.at(-1).sequence
    left -= rows.length
  }
}

/** What was accepted, oldest first. */
export async function* transactionRows(pool: pg.Pool, { limit, client }: Page): AsyncGenerator<string[]> {
  let after = { at: '-infinity', position: 0, id: '', client: '' }
  for (let left = limit; left > 0; ) {
    const { rows } = await pool.query(
      `
      select ${transactionColumns}, position::double precision as position from sandbox.transactions
      where (accepted_at, position, id, client) > ($1::timestamptz, $2::bigint, $3, $4)
        and ($6::text is null or client = $6)
      order by accepted_at, transactions.position, id, client
      limit $5
      `,
      [after.at, after.position, after.id, after.client, Math.min(left, batchRows), client],
    )
    if (rows.length === 0) return
    yield rows.map(({ position: _position, ...row }) => JSON.stringify(row))
    const last = rows.at(-1)
    after = { at: last.acceptedAt, position: last.position, id: last.transactionId, client: last.client }
    left -= rows.length
  }
}

/** Orders, oldest first; `items` is JSON text. */
export async function* orderRows(pool: pg.Pool, { limit, client }: Page): AsyncGenerator<string[]> {
  let after = { at: '-infinity', position: 0, id: '00000000-0000-0000-0000-000000000000', client: '' }
  for (let left = limit; left > 0; ) {
    const { rows } = await pool.query(
      `
      select ${orderColumns}, position::double precision as position
      from (
        select *, row_number() over w as place, sum(octet_length(items::text)) over w as bytes
        from (
          select * from sandbox.orders
          where (created_at, position, id, client) > ($1::timestamptz, $2::bigint, $3::uuid, $4)
            and ($7::text is null or client = $7)
          order by created_at, position, id, client
          limit $5
        ) found
        window w as (order by created_at, position, id, client)
      ) batch
      where place = 1 or bytes <= $6
      order by place
      `,
      [after.at, after.position, after.id, after.client, Math.min(left, batchRows), batchBytes, client],
    )
    if (rows.length === 0) return
    yield rows.map(({ position: _position, ...row }) => JSON.stringify(row))
    const last = rows.at(-1)
    after = { at: last.createdAt, position: last.position, id: last.orderId, client: last.client }
    left -= rows.length
  }
}

/** An event of the queue and its line of JSON. */
export interface EventLine {
  id: string
  line: string
}

/**
 * The events on the queue, in the order in which they were put there.
 *
 * jsonb writes its numbers out without exponents: 45 kB of `1e131071`, which the sandbox took before it bounded them, are
 * 655 MB of text. An event with such a number is shown without its contents, and says so under `unreadable`.
 */
export async function* eventLines(pool: pg.Pool, page: Page): AsyncGenerator<EventLine[]> {
  const ids = await eventIds(pool, page)
  for (let start = 0; start < ids.length; ) {
    const asked = ids.slice(start, start + batchRows)
    const { rows } = await pool.query<{ id: string; state: string; event: string | null; place: string }>(
      `
      select id, state::text as state, case when readable then data::text end as event, place
      from (
        select id, state, data, place, readable, row_number() over w as found,
          sum(case when readable then octet_length(data::text) else 0 end) over w as bytes
        from unnest($2::uuid[]) with ordinality as asked (id, place)
          join ${queueSchema}.job using (id)
          cross join lateral (
            select not exists (
              select from jsonb_path_query(data, 'strict $.** ? (@.type() == "number")') as number
              where abs(number::numeric) >= 1e${numberDigitsMax} or scale(number::numeric) > ${numberDigitsMax}
            ) as readable
          ) judged
        where job.name = $1
        window w as (order by place)
      ) batch
      where found = 1 or bytes <= $3
      order by place
      `,
      [queueName, asked, batchBytes],
    )
    yield rows.map(({ id, state, event }) => ({ id, line: eventLine(id, state, event) }))
    start += Number(rows.at(-1)?.place ?? asked.length) // none of them is there any more
  }
}

/** The same without their ids. */
export async function* eventRows(pool: pg.Pool, page: Page): AsyncGenerator<string[]> {
  for await (const batch of eventLines(pool, page)) yield batch.map(({ line }) => line)
}

async function eventIds(pool: pg.Pool, { limit, client }: Page): Promise<string[]> {
  const { rows } = await pool.query<{ ids: string[] }>(
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
  return rows[0]?.ids ?? []
}

/** @param event its JSON, or null where it cannot be shown */
export function eventLine(id: string, state: string, event: string | null): string {
  if (event !== null) return `{"id":"${id}","state":"${state}","event":${event}}`
  const unreadable = `it has a number of more than ${numberDigitsMax} digits, written out: no consumer could read it`
  return JSON.stringify({ id, state, event: null, unreadable })
}
