import { expect, test } from 'vitest'
import { openForFile } from '../support/openForFile.ts'
import { type Json, order, setup, submission } from './setup.ts'

const on = openForFile(() => setup({ processingTime: 'constant:300', tokenLifetimeSeconds: 400 }))

const tenMinutes = { advanceSeconds: 600 }

function onlyFor(token: string) {
  return { authorization: `Bearer ${token}` }
}

test('after the clock is advanced ten minutes, transactions and orders have ended in between', async () => {
  const before = Date.parse((await on.control('GET', '/clock')).now)
  const { transactionId } = (await on.call('POST', '/api/v1/data', submission(), onlyFor(await on.token()))).json
  const { orderId } = (await on.call('POST', '/api/v1/orders', order(), onlyFor(await on.token()))).json
  const { now, offsetSeconds } = await on.control('POST', '/clock', tenMinutes)
  expect(Date.parse(now)).toBeGreaterThanOrEqual(before + 600_000)
  expect(offsetSeconds).toBeGreaterThanOrEqual(600)
  const fresh = onlyFor(await on.token())
  const transaction = (await on.call('GET', `/api/v1/data/${transactionId}`, undefined, fresh)).json
  expect(transaction.status).toBe('completed')
  expect(Date.parse(transaction.result.processedAt)).toBeGreaterThanOrEqual(before + 300_000)
  expect(Date.parse(transaction.result.processedAt)).toBeLessThan(Date.parse(now))
  expect((await on.call('GET', `/api/v1/orders/${orderId}`, undefined, fresh)).json.status).toBe('completed')
})

test('after the clock is advanced ten minutes, a token has expired and a new one is valid', async () => {
  const token = await on.token()
  await on.control('POST', '/clock', tenMinutes)
  expect((await on.call('GET', '/api/v1/data/none', undefined, onlyFor(token))).status).toBe(401)
  expect((await on.call('GET', '/api/v1/data/none', undefined, onlyFor(await on.token()))).status).toBe(404)
})

test('after the clock is advanced ten minutes, a full window is empty', async () => {
  await on.control('DELETE', '/ledger')
  await on.control('PATCH', '/settings', { rateLimitRequests: 2 })
  const ask = async () => on.call('GET', '/api/v1/data/none', undefined, onlyFor(await on.token()))
  expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([404, 404, 429])
  await on.control('POST', '/clock', tenMinutes)
  const first = await ask()
  expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([404, '1'])
  await on.control('DELETE', '/settings')
})

test('the times of the ledger, of an order, of its event and of the header Date follow the clock', async () => {
  const { now } = await on.control('POST', '/clock', tenMinutes)
  const after = Date.parse(now)
  const created = await on.call('POST', '/api/v1/orders', order(), onlyFor(await on.token()))
  const { rows } = await on.control('GET', '/ledger?endpoint=order')
  const events = (await on.control('GET', '/events')).rows
  const times = {
    created: created.json.createdAt,
    ledger: rows.at(-1).arrivedAt,
    event: events.at(-1).event.time,
    orders: (await on.control('GET', '/orders')).rows.at(-1).createdAt,
  }
  for (const [where, time] of Object.entries(times)) {
    expect(Date.parse(time), `${where}: ${time}`).toBeGreaterThanOrEqual(after - 1)
    expect(Date.parse(time), where).toBeLessThan(after + 60_000)
  }
  expect(Math.abs(Date.parse(created.headers.get('date') ?? '') - after)).toBeLessThan(60_000)
})

test('a restart keeps the clock’s offset', async () => {
  const { now, offsetSeconds } = await on.control('POST', '/clock', tenMinutes)
  await on.restart()
  const after = await on.control('GET', '/clock')
  expect(after.offsetSeconds).toBe(offsetSeconds)
  expect(Date.parse(after.now)).toBeGreaterThanOrEqual(Date.parse(now))
})

test('concurrent advances of the clock add up', async () => {
  const { offsetSeconds } = await on.control('GET', '/clock')
  await Promise.all(Array.from({ length: 10 }, () => on.control('POST', '/clock', { advanceSeconds: 0.5 })))
  expect((await on.control('GET', '/clock')).offsetSeconds).toBe(offsetSeconds + 5)
  await on.restart()
  expect((await on.control('GET', '/clock')).offsetSeconds).toBe(offsetSeconds + 5)
})

test('the clock can only be advanced, up to the year 2200, and only deleting everything resets it', async () => {
  await on.control('POST', '/clock', tenMinutes)
  const back = on.control('POST', '/clock', { advanceSeconds: -1 })
  await expect(back).rejects.toThrow('DELETE /_sandbox/ledger?everything=true resets it')
  await expect(on.control('POST', '/clock', { advanceSeconds: 1e10 })).rejects.toThrow('cannot go beyond 2200')
  await expect(on.control('POST', '/clock', { seconds: 1 })).rejects.toThrow('advanceSeconds')
  await on.control('DELETE', '/ledger')
  expect((await on.control('GET', '/clock')).offsetSeconds).toBeGreaterThanOrEqual(600)
  await on.control('DELETE', '/ledger?everything=true')
  expect(await on.control('GET', '/clock')).toMatchObject({ offsetSeconds: 0, stands: false })
})

test('a stopped clock moves only when it is advanced, exactly to the microsecond, also over a restart', async () => {
  await using standing = await setup({ clock: '2026-01-01T00:00:00Z', processingTime: 'constant:2' })
  const { transactionId, timestamp } = (await standing.call('POST', '/api/v1/data', submission())).json
  expect(timestamp).toBe('2026-01-01T00:00:00.000Z')
  const status = async () => (await standing.call('GET', `/api/v1/data/${transactionId}`)).json
  await standing.control('POST', '/clock', { advanceSeconds: 1.999999 })
  expect((await status()).status).toBe('pending')
  await standing.restart()
  expect((await status()).status).toBe('pending')
  await standing.control('POST', '/clock', { advanceSeconds: 0.000001 })
  expect(await status()).toMatchObject({
    status: 'completed',
    result: { processedAt: '2026-01-01T00:00:02.000Z' },
  })
  expect(await standing.control('GET', '/clock')).toEqual({
    now: '2026-01-01T00:00:02.000000Z',
    offsetSeconds: 2,
    stands: true,
  })
})

test('lists are in order of arrival even if the clock is stopped', async () => {
  await using standing = await setup({ clock: '2026-01-01T00:00:00Z' })
  const given: string[][] = [[], []]
  for (let n = 0; n < 8; n += 1) {
    given[0]?.push((await standing.call('POST', '/api/v1/data', submission())).json.transactionId)
    given[1]?.push((await standing.call('POST', '/api/v1/orders', order())).json.orderId)
  }
  const rows = async (list: string): Promise<Json[]> => (await standing.control('GET', list)).rows
  expect((await rows('/transactions')).map(({ transactionId }) => transactionId)).toEqual(given[0])
  expect((await rows('/orders')).map(({ orderId }) => orderId)).toEqual(given[1])
  expect((await rows('/events')).map(({ event }) => event.subject)).toEqual(given[1])
})
