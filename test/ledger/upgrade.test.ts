import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrateState } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { type Harness, setup } from '../e2e/faults/harness.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { loadVersion010 } from '../support/loadVersion010.ts'
import { until } from '../support/until.ts'

/**
 * What version 0.1.0 left behind (version-0.1.0/, by pg_dump): a ledger with records in every state, three of them being asked for and one
 * on the wire when its daemon was killed, rows that it had not taken, and the service's own ledger.
 */

let ledger: TestDatabase
let service: TestDatabase
let harness: Harness

beforeAll(async () => {
  ledger = await load('ledger')
  service = await load('service')
})
afterAll(async () => {
  await harness?.[Symbol.asyncDispose]()
  await ledger[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

async function load(what: 'ledger' | 'service'): Promise<TestDatabase> {
  const database = await createDatabase('template0')
  await loadVersion010(database.url, what)
  return database
}

/** Marker of each row, and what became of it. */
async function statuses(): Promise<Record<string, string>> {
  const { rows } = await ledger.pool.query<{ marker: string; status: string }>(
    `select payload->>'field2' as marker, status from outbox order by id`,
  )
  return Object.fromEntries(rows.map(({ marker, status }) => [marker, status]))
}

const before = {
  'done 0': 'completed',
  'done 1': 'completed',
  'done 2': 'completed',
  'by key': 'completed',
  unknown: 'rejected',
  cents: 'rejected',
  'fail:E001': 'failed',
  'given up': 'discarded',
  'no answer': 'uncertain',
  resolved: 'completed',
  'under way 0': 'accepted',
  'under way 1': 'accepted',
  'under way 2': 'accepted',
  behind: 'rejected',
  'on the wire': 'queued', // a row is told of no request before it is answered
  'waits 0': 'queued',
  'waits 1': 'queued',
  'not captured': 'new',
  'not captured, an order': 'new',
}

test('a ledger of 0.1.0 is brought up to this version, twice without harm, and keeps every record, event and poll', async () => {
  const count = async () => {
    const { rows } = await ledger.pool.query(
      `select (select count(*) from outboxd.submission)::int as submissions,
         (select count(*) from outboxd.submission_event)::int as events,
         (select count(*) from pgboss.job where state in ('created', 'active', 'retry'))::int as polls`,
    )
    return rows[0]
  }
  const had = await count()
  expect(had).toMatchObject({ submissions: 17, polls: 3 })
  const applied = await migrateState(ledger.url)
  expect(applied[0]).toBe('0003_problem')
  await migrateOutbox(ledger.url, 'outbox')
  expect(await migrateState(ledger.url)).toEqual([])
  expect(await count()).toEqual(had)
  expect(await statuses()).toEqual(before)
})

test('its daemon takes all of them to their ends, and sends none twice', async () => {
  harness = await setup({ databaseUrl: service.url }, ledger.url)
  await harness.control('DELETE', 'faults')
  await harness.control('PATCH', 'settings', { processingTime: 'constant:0.1' })
  await harness.control('POST', 'clock', { advanceSeconds: 7_200 })
  await harness.start()
  const after = await until(
    statuses,
    (now) => !Object.values(now).some((status) => ['new', 'queued', 'sending', 'accepted'].includes(status)),
  )
  expect(after).toEqual({
    ...before,
    'under way 0': 'completed',
    'under way 1': 'completed',
    'under way 2': 'completed',
    'on the wire': 'uncertain',
    'waits 0': 'completed',
    'waits 1': 'completed',
    'not captured': 'completed',
    'not captured, an order': 'completed',
  })
  const { rows } = await service.pool.query<{ marker: string; times: number }>(
    `select coalesce(body::jsonb #>> '{data,field2}', 'not captured, an order') as marker, count(*)::int as times
     from sandbox.ledger where num_nonnulls(transaction_id, order_id) = 1 and method = 'POST' group by 1`,
  )
  // What was on the wire had not come to it when its daemon was killed, which no daemon can know.
  const neverTaken = ['unknown', 'cents', 'given up', 'behind', 'on the wire']
  expect(Object.fromEntries(rows.map(({ marker, times }) => [marker, times]))).toEqual(
    Object.fromEntries(
      Object.keys(before)
        .filter((marker) => !neverTaken.includes(marker))
        .map((marker) => [marker, 1]),
    ),
  )
})
