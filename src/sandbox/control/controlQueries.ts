import type pg from 'pg'
import { queueName, queueSchema } from '../storage/orderEvents.ts'

/** What /_sandbox/ counts and forgets; the SQL behind it. */

/** How many requests there were, by endpoint and answer, and how many of them changed something. */
export async function readCounts(pool: pg.Pool, client: string | null): Promise<unknown[]> {
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

/** Forgets every request; with `everything`, also transactions, orders and events. */
export async function forget(pool: pg.Pool, everything: boolean): Promise<void> {
  await pool.query('truncate sandbox.ledger restart identity')
  if (!everything) return
  await pool.query('truncate sandbox.transactions, sandbox.orders')
  await pool.query(`delete from ${queueSchema}.job where name = $1`, [queueName])
}

/**
 * Forgets the requests of one client; with `everything`, also what it made.
 *
 * Hits of a fault are counted in the ledger: what is left of each is written down with the rows that go.
 *
 * @returns how many requests have gone that met each fault, by its id
 */
export async function forgetClient(pool: pg.Pool, client: string, everything: boolean): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ fault: string; hits: number }>(
    `
    with gone as (
      delete from sandbox.ledger where client = $1 returning fault_id
    ), hits as (
      select fault_id, count(*)::integer as n from gone where fault_id is not null group by 1
    ), faults as (
      update sandbox.faults f set spec = jsonb_set(spec, '{times}', to_jsonb((spec ->> 'times')::bigint - hits.n))
      from hits where f.id = hits.fault_id and spec ? 'times'
    ), transactions as (
      delete from sandbox.transactions where $2 and client = $1
    ), events as (
      delete from ${queueSchema}.job
      where $2 and name = $3 and id in (select event_id from sandbox.orders where client = $1)
    ), orders as (
      delete from sandbox.orders where $2 and client = $1
    )
    select fault_id as fault, n as hits from hits
    `,
    [client, everything, queueName],
  )
  return new Map(rows.map(({ fault, hits }) => [Number(fault), hits]))
}

/** So many rows of the ledger are read at once: a text of two megabytes. */
const chunkRows = 100_000

/**
 * The most API calls in any window: as they arrived, all clients together, and as they were admitted, for one client.
 * Of a client, its own alone; null for all.
 *
 * Of each request a number is read and nothing is sorted by Postgres: 300,000 rows take less than a third of a second, and 16 bytes each.
 */
export async function readRate(
  pool: pg.Pool,
  windowSeconds: number,
  client: string | null,
): Promise<{ windowSeconds: number; requests: number; maxArrived: number; maxAdmitted: number }> {
  const groups = await readArrivals(pool, client)
  const windowUs = Math.round(windowSeconds * 1_000_000)
  const all = groups.flatMap(({ timesUs }) => timesUs)
  const admitted = Map.groupBy(
    groups.filter(({ counted }) => counted),
    ({ client }) => client,
  )
  const mostOfEach = admitted.values().map((own) =>
    mostInWindow(
      own.flatMap(({ timesUs }) => timesUs),
      windowUs,
    ),
  )
  return {
    windowSeconds,
    requests: all.reduce((sum, { length }) => sum + length, 0),
    maxArrived: mostInWindow(all, windowUs),
    maxAdmitted: Math.max(0, ...mostOfEach),
  }
}

/** The most of `timesUs`, in any order, that a window holds. Requests exactly one window apart are in no window together; one is in its own. */
export function mostInWindow(timesUs: readonly Float64Array[], windowUs: number): number {
  const sorted = new Float64Array(timesUs.reduce((sum, { length }) => sum + length, 0))
  timesUs.reduce((at, part) => {
    sorted.set(part, at)
    return at + part.length
  }, 0)
  sorted.sort()
  let [most, first] = [0, 0]
  for (const [last, timeUs] of sorted.entries()) {
    while (first < last && timeUs - (sorted[first] ?? timeUs) >= windowUs) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}

interface Arrivals {
  client: string
  counted: boolean
  timesUs: Float64Array
}

/** When the API calls arrived, in microseconds since the first row; in no order, some of one client at a time. */
async function readArrivals(pool: pg.Pool, client: string | null): Promise<Arrivals[]> {
  const { rows: ends } = await pool.query<{ first: string | null; last: string; began: string }>(
    'select min(sequence) as first, max(sequence) as last, min(arrived_at)::text as began from sandbox.ledger',
  )
  const [{ first, last, began } = { first: null, last: '0', began: '' }] = ends
  const arrivals: Arrivals[] = []
  if (first === null) return arrivals
  for (let from = Number(first); from <= Number(last); from += chunkRows) {
    const { rows } = await pool.query<{ client: string; counted: boolean; times_us: string }>(
      `
      select coalesce(client, address) as client, counted,
        string_agg((date_part('epoch', arrived_at - $3::timestamptz) * 1000000)::bigint::text, ',') as times_us
      from sandbox.ledger
      where sequence >= $1 and sequence < $2 and path like '/api/%' and ($4::text is null or client = $4)
      group by 1, 2
      `,
      [from, from + chunkRows, began, client],
    )
    for (const row of rows) arrivals.push({ ...row, timesUs: Float64Array.from(row.times_us.split(','), Number) })
  }
  return arrivals
}
