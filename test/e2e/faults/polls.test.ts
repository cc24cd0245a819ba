import { afterEach, beforeAll, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { setup, shortTimeout } from './harness.ts'

/** Polls that go wrong. They never make the transaction fail. */

const harness = openForFile(() => setup())
beforeAll(async () => {
  await harness.start(shortTimeout)
})
afterEach(() => harness.control('DELETE', 'faults'))

test.each([
  { name: 'status-500', fault: { kind: 'answer', status: 500 } },
  { name: 'status-502', fault: { kind: 'answer', status: 502 } },
  { name: 'status-404', fault: { kind: 'answer', status: 404 } },
  { name: 'status-drop', fault: { kind: 'drop' } },
  { name: 'status-garbage', fault: { kind: 'garbage' } },
  { name: 'status-unknown', fault: { kind: 'unknown_status', value: 'archived' } },
  { name: 'status-other', fault: { kind: 'wrong_id' } },
  { name: 'status-gzip', fault: { kind: 'gzip', bytes: 1_000 } },
  { name: 'status-401', fault: { kind: 'answer', status: 401 } },
  { name: 'status-429', fault: { kind: 'answer', status: 429 } },
  { name: 'status-late', fault: { kind: 'delay', delayMs: 2_600 } },
])('a poll gets an error, a late or no answer, garbage, gzip, another id or status ($name): asked again, completed', async ({
  name,
  fault,
}) => {
  await harness.fault({ ...fault, endpoint: 'status', times: 1 })
  await harness.insert(`${name}-`)
  const outcome = await harness.becomes(`${name}-`, 'completed')
  expect(outcome).toMatchObject({ posts: [200], effects: 1 })
})

test("a poll's answer above 1 MB: read, completed", async () => {
  await harness.fault({ kind: 'oversized', bytes: 1_500_000, endpoint: 'status' })
  await harness.insert('large-')
  expect(await harness.becomes('large-', 'completed')).toMatchObject({ posts: [200], effects: 1 })
})

test('a result nested 3,000 deep is kept less deep, and the record completes', async () => {
  const result = `${'{"a":['.repeat(1_500)}${']}'.repeat(1_500)}`
  const body = `{"status":"completed","result":${result},"note":1.10}`
  await harness.fault({ kind: 'answer', status: 200, body, contentType: 'application/json', endpoint: 'status' })
  await harness.insert('deep-')
  expect(await harness.becomes('deep-', 'completed')).toMatchObject({ posts: [200], effects: 1 })
  const { rows } = await harness.pool.query(`select result from outboxd.submission where result like '%nested deeper%'`)
  expect(rows).toHaveLength(1)
  expect(rows[0].result.length).toBeLessThan(1_000)
})

test('404 to polls for ten minutes: failed', async () => {
  await harness.fault({ kind: 'answer', status: 404, endpoint: 'status' })
  await harness.insert('long-404-')
  await until(
    () => harness.pool.query('select from outboxd.submission where unknown_since is not null'),
    ({ rowCount }) => rowCount === 1,
  )
  await harness.pool.query(`update outboxd.submission set unknown_since = clock_timestamp() - interval '11 minutes'
    where unknown_since is not null`)
  const outcome = await harness.becomes('long-404-', 'failed')
  expect(outcome.error).toContain('no longer knows it')
})
