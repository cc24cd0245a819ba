import { beforeAll, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { setup } from './harness.ts'

/** Records that cannot be read or mapped are rejected with the reason and without a request, and others go on. */

const harness = openForFile(() => setup())
beforeAll(async () => {
  await harness.start()
})

async function insertPayload(type: string, payload: string): Promise<string> {
  const { rows } = await harness.pool.query<{ id: string }>(
    'insert into outbox (type, payload) values ($1, $2) returning id::text',
    [type, payload],
  )
  await harness.insert(`after-${rows[0]?.id}-`)
  await harness.becomes(`after-${rows[0]?.id}-`, 'completed')
  const { rows: ends } = await harness.pool.query<{ status: string; error: string; attempt: number }>(
    `select status, o.error, attempt from outbox o join outboxd.submission s on s.outbox_id = o.id::text where o.id = $1`,
    [rows[0]?.id],
  )
  return `${ends[0]?.status} ${ends[0]?.attempt} ${ends[0]?.error}`
}

const good = { customerId: 'C1', orderDate: '2026-11-21T10:00:00Z', amount: 1, field2: 'x' }

test.each([
  [
    'a payload of 10 MB',
    'data',
    JSON.stringify({ ...good, field2: 'x'.repeat(10_000_000) }),
    /payload has 10\d+ bytes/,
  ],
  ['a type without a mapping', 'invoice', '{}', /no mapping file for the type "invoice"/],
  ['a payload that is no object', 'data', '[1, 2]', /object/],
  ['a missing field', 'data', '{}', /customer_id/],
  ['an amount with a third decimal', 'data', JSON.stringify({ ...good, amount: 0.005 }), /total_amount/],
  ['an amount with a comma', 'data', JSON.stringify({ ...good, amount: '1,50' }), /total_amount/],
  ['a date without an offset', 'data', JSON.stringify({ ...good, orderDate: '2026-11-21T10:00:00' }), /order_date/],
])('10 MB, no mapping, no object, a missing field, a bad amount or date (%s): rejected, no request', async (_, type, payload, reason) => {
  const end = await insertPayload(type, payload)
  expect(end).toMatch(/^rejected 0 /)
  expect(end).toMatch(reason)
})

test('a body too large for the service: rejected', async () => {
  const end = await insertPayload('data', JSON.stringify({ ...good, field2: 'x'.repeat(300_000) }))
  expect(end).toMatch(/^rejected 1 .*413/)
})
