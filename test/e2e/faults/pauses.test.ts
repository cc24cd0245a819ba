import { afterEach, beforeAll, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** Trouble that affects all records: sending pauses, no attempt is used up, and sending resumes by itself. */

const harness = openForFile(() => setup())
beforeAll(async () => {
  await harness.start()
})
afterEach(async () => {
  await harness.service.setFault(null)
  await harness.control('DELETE', 'faults')
})

/** Inserts `count` records. @returns their markers */
async function insertMany(name: string, count: number): Promise<string[]> {
  const markers = Array.from({ length: count }, (_, i) => `${name}-${i}-`)
  for (const marker of markers) await harness.insert(marker)
  return markers
}

const completed = (markers: string[]) => Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))

/** Statuses of the POSTs at the service, in the order of arrival. */
async function posts(): Promise<(number | null)[]> {
  const { rows } = (await harness.control('GET', 'ledger?endpoint=submit&limit=100000')) as {
    rows: { status: number | null }[]
  }
  return rows.map(({ status }) => status)
}

test.each([
  { name: '503', fault: { kind: 'answer', status: 503 } },
  { name: 'e003', fault: { kind: 'answer', status: 400, code: 'E003' } },
])('503, or E003 with any status ($name): pause, one trial, nothing used up', async ({ name, fault }) => {
  const before = (await posts()).length
  await harness.fault({ ...fault, endpoint: 'submit' })
  const markers = await insertMany(name, 20)
  await until(harness.pauses, (reasons) => reasons.includes('unavailable'))
  // When the second trial has been refused, all earlier requests have been answered.
  const inFlightMost = 8
  const first = (await posts()).length - before
  await until(
    async () => (await posts()).length - before,
    (n) => n >= first + 2,
  )
  expect(first).toBeLessThanOrEqual(inFlightMost + 1)
  await harness.control('DELETE', 'faults')
  const outcomes = await completed(markers)
  expect(outcomes.every(({ effects }) => effects === 1)).toBe(true)
  expect(new Set(outcomes.flatMap(({ keys }) => keys)).size).toBe(20)
  expect(await harness.pauses()).toEqual([])
})

test('429 with Retry-After: waits that long', async () => {
  const before = Date.now()
  await harness.fault({ kind: 'answer', status: 429, headers: { 'retry-after': '2' }, endpoint: 'submit', times: 1 })
  const [first = '', ...others] = await insertMany('retry-after', 5)
  await completed([first, ...others])
  expect(Date.now() - before).toBeGreaterThanOrEqual(2_000)
  const outcomes = await Promise.all([first, ...others].map(harness.outcome))
  expect(outcomes.flatMap(({ posts }) => posts).filter((status) => status === 429)).toHaveLength(1)
})

test('429 without Retry-After: waits a second', async () => {
  await harness.fault({ kind: 'answer', status: 429, endpoint: 'submit', times: 1 })
  const [outcome] = await completed(await insertMany('throttled', 1))
  expect(outcome?.posts).toEqual([429, 200])
})

test('401 once: same request with a new token', async () => {
  await harness.fault({ kind: 'answer', status: 401, endpoint: 'submit', times: 1 })
  const [outcome] = await completed(await insertMany('once-401', 1))
  expect(outcome).toMatchObject({ posts: [401, 200], effects: 1 })
  expect(outcome?.causes.join()).not.toContain('pause')
})

test('tokens are revoked: same request with a new token', async () => {
  await harness.control('POST', 'tokens/revoke')
  const [outcome] = await completed(await insertMany('revoked', 1))
  expect(outcome?.posts).toEqual([401, 200])
})

test.each([
  { name: 'without a code', more: {} },
  { name: 'with E002, which failed records within a second', more: { code: 'E002' } },
])('401 again and again ($name): pause, nothing used up', async ({ name, more }) => {
  await harness.fault({ kind: 'answer', status: 401, ...more, endpoint: 'submit' })
  const markers = await insertMany(`always-401-${name}`, 5)
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))
  await harness.control('DELETE', 'faults')
  const outcomes = await completed(markers)
  expect(outcomes.every(({ effects, keys }) => effects === 1 && new Set(keys).size === 1)).toBe(true)
})

test('401 to every submission costs a wave after each wait of a young token and one new token, then all pause', async () => {
  await using own = await setup()
  await own.fault({ kind: 'answer', status: 401, delayMs: 100, endpoint: 'submit' })
  for (let n = 0; n < 60; n++) await own.insert(`wave-${n}-`)
  const daemon = await own.start({ UNAUTHORIZED_PAUSE_SECONDS: '600', MAX_IN_FLIGHT: '8' })
  await until(own.pauses, (reasons) => reasons.includes('unauthorized'))
  await daemon.stop()
  const made = async (endpoint: string) =>
    ((await own.control('GET', `ledger?endpoint=${endpoint}&limit=1000`)) as { rows: unknown[] }).rows.length
  expect(await made('submit')).toBeLessThanOrEqual(5 * 8)
  expect(await made('submit')).toBeGreaterThan(1)
  expect(await made('token')).toBe(2)
  const { rows } = await own.pool.query('select distinct state from outboxd.submission')
  expect(rows).toEqual([{ state: 'queued' }])
})

test.each([
  { name: '403', fault: { kind: 'answer', status: 403 } },
  { name: '307', fault: { kind: 'redirect', status: 307 } },
  { name: '302', fault: { kind: 'redirect', status: 302 } },
])('a redirect or 403 ($name): not followed, pause; after a redirect may have arrived', async ({ name, fault }) => {
  await harness.fault({ ...fault, endpoint: 'submit' })
  const markers = await insertMany(`conf-${name}`, 3)
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))
  await harness.control('DELETE', 'faults')
  const outcomes = await completed(markers)
  expect(outcomes.every(({ effects }) => effects === 1)).toBe(true)
})

test('each POST is stored, then redirected: uncertain after the second', async () => {
  await harness.fault({ kind: 'redirect', status: 302, when: 'after', endpoint: 'submit' })
  const markers = await insertMany('stored-302', 2)
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'uncertain')))
  expect(outcomes.map(({ keys }) => keys.length)).toEqual([2, 2])
  const { rows } = await harness.pool.query(`select cause from outboxd.pause where reason = 'breaker'`)
  expect(rows).toEqual([{ cause: 'unauthorized' }])
})

test.each([
  {
    name: '404',
    fault: { kind: 'answer', status: 404, body: '<h1>default backend - 404</h1>', contentType: 'text/html' },
  },
  { name: '405', fault: { kind: 'answer', status: 405 } },
  { name: '410', fault: { kind: 'answer', status: 410, body: '' } },
])('404, 405 or 410 while the partner deploys ($name): pause, nothing used up', async ({ name, fault }) => {
  await harness.fault({ ...fault, endpoint: 'submit' })
  const markers = await insertMany(`deploys-${name}`, 20)
  await until(harness.pauses, (reasons) => reasons.includes('unreachable'))
  const { rows } = await harness.pool.query(`select detail from outboxd.standing_pause where reason = 'unreachable'`)
  expect(rows[0].detail).toContain('SERVICE_BASE_URL')
  await harness.control('DELETE', 'faults')
  const outcomes = await completed(markers)
  expect(outcomes.every(({ effects, keys }) => effects === 1 && new Set(keys).size === 1)).toBe(true)
})

test('the token issuer fails: pause, nothing used up', async () => {
  await harness.fault({ kind: 'answer', status: 500, endpoint: 'token' })
  await harness.control('POST', 'tokens/revoke')
  const markers = await insertMany('issuer', 3)
  await until(harness.pauses, (reasons) => reasons.length > 0)
  await harness.control('DELETE', 'faults')
  const outcomes = await completed(markers)
  expect(outcomes.every(({ effects }) => effects === 1)).toBe(true)
})

test('connection refused: pause, nothing used up', async () => {
  await harness.service.setFault({ kind: 'refuse' })
  const markers = await insertMany('refused', 5)
  await until(harness.pauses, (reasons) => reasons.includes('unreachable'))
  await harness.service.setFault(null)
  const outcomes = await completed(markers)
  expect(outcomes.every(({ posts }) => posts.length === 1)).toBe(true)
})

test('E003 to a poll: pause, asked again', async () => {
  await harness.fault({ kind: 'answer', status: 503, code: 'E003', endpoint: 'status', times: 2 })
  const [outcome] = await completed(await insertMany('poll-e003', 1))
  expect(outcome).toMatchObject({ posts: [200], effects: 1 })
})
