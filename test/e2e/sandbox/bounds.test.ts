import { PgBoss } from 'pg-boss'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Json, order, setup, submission } from '../../sandbox/setup.ts'
import { openForFile } from '../../support/openForFile.ts'

const s = openForFile(() => setup({ processingTime: 'constant:0' }))
beforeEach(async () => {
  await s.control('DELETE', '/ledger?everything=true')
})

const create = (items: string) =>
  s.call('POST', '/api/v1/orders', `{"customerId":"${order().customerId}","items":${items}}`)
const submit = (more: string) =>
  s.call('POST', '/api/v1/data', `{"customerId":"C1","data":{"field1":"value1","field2":"","more":${more}}}`)
const events = async (): Promise<Json[]> => (await s.control('GET', '/events')).rows

describe('a request that Postgres cannot store is refused before anything is stored', () => {
  test.each<[string, string, string]>([
    ['the first half of a surrogate pair', '["\\ud800"]', 'items.0'],
    ['the second half of a surrogate pair', '["\\udc00 and more"]', 'items.0'],
    ['half a surrogate pair in a key', '[{"a\\ud800":1}]', 'items.0'],
    ['a number beyond jsonb', '[1e131072]', 'items.0'],
    ['a number that jsonb would write with 131,072 digits', '[{"price":1e131071}]', 'items.0.price'],
    ['a number too small for jsonb', '[-1e-20000]', 'items.0'],
    ['zero with 16,000 decimals', '[0e-16000]', 'items.0'],
    ['200,000 digits', `[${'9'.repeat(200_000)}]`, 'items.0'],
    ['101 digits', `[${'9'.repeat(101)}]`, 'items.0'],
    ['a number of 101 digits by its exponent', '[1e100]', 'items.0'],
    ['101 nested arrays', `${'['.repeat(101)}${']'.repeat(101)}`, `items${'.0'.repeat(99)}`],
  ])('%s: 400 with the field', async (_what, items, field) => {
    const ordered = await create(items)
    const submitted = await submit(items)
    expect([ordered.status, submitted.status]).toEqual([400, 400])
    expect(ordered.json.errors[0].field).toBe(field)
    expect(submitted.json.errors[0].field).toMatch(/^data\.more/)
    expect((await s.control('GET', '/orders')).rows).toEqual([])
    expect(await events()).toEqual([])
  })

  test('60,000 nested arrays get 400', async () => {
    const deep = await create(`${'['.repeat(60_000)}${']'.repeat(60_000)}`)
    expect(deep.status).toBe(400)
  })

  test('numbers and texts within the bounds keep every digit, and an event is written', async () => {
    const items = `["\\ud83d\\ude00",{"${'x'.repeat(300)}":1e99},-1E-99,${'9'.repeat(100)},1.50,-0.0]`
    const created = await create(items)
    expect(created.status).toBe(201)
    const read = await s.call('GET', `/api/v1/orders/${created.json.orderId}`)
    expect(read.text).toContain(`"items":${items.replace('\\ud83d\\ude00', '😀')}`)
    expect(await events()).toHaveLength(1)
  })

  test('a pg-boss worker gets the largest possible event', async () => {
    const items = Array(50_000).fill('1e99')
    expect((await create(`[${items.join()}]`)).status).toBe(201)
    const boss = new PgBoss({
      connectionString: s.database.url,
      schema: 'sandbox_queue',
      supervise: false,
      schedule: false,
      migrate: false,
    })
    await boss.start()
    try {
      const [job] = await boss.fetch<{ data: { items: number[] } }>('OrderCreated')
      expect(job?.data.data.items).toEqual(items.map(Number))
    } finally {
      await boss.stop({ graceful: false })
    }
  })

  test('an idempotency key that is too long for an index gets 400 in every mode', async () => {
    const key = Array.from({ length: 4000 }, () => String.fromCharCode(33 + Math.random() * 90)).join('')
    expect((await s.call('POST', '/api/v1/data', submission(), { 'idempotency-key': key })).status).toBe(400)
    await s.control('PATCH', '/settings', { idempotency: 'ignore' })
    expect((await s.call('POST', '/api/v1/orders', order(), { 'idempotency-key': key })).status).toBe(400)
    await s.control('DELETE', '/settings')
  })

  test('a customerId may have ten characters that JavaScript counts as twenty', async () => {
    expect((await s.call('POST', '/api/v1/data', submission({}, '😀'.repeat(10)))).status).toBe(200)
    expect((await s.call('POST', '/api/v1/data', submission({}, '😀'.repeat(11)))).status).toBe(400)
  })
})

test.each([
  '"\\ud800"',
  '"\\u0000"',
  '{"\\udc00":1}',
])('a fault that answers %s cannot be stored, and gets 400', async (body) => {
  const fault = `{"kind":"answer","status":500,"body":${body}}`
  await expect(s.control('POST', '/faults', fault)).rejects.toThrow('"status":400')
  expect((await s.control('GET', '/faults')).rows).toEqual([])
})

test.each([
  ['GET', '/ledger?idempotencyKey=%00'],
  ['GET', '/ledger?endpoint=a%00'],
  ['PATCH', '/transactions/%00'],
])('%s %s contains NUL, and gets 400 instead of 500', async (method, path) => {
  const body = method === 'PATCH' ? { finish: 'completed' } : undefined
  await expect(s.control(method, path, body)).rejects.toThrow('"status":400')
})

test('a window of less than a millisecond is refused, and one of a millisecond is accepted', async () => {
  await s.call('POST', '/api/v1/data', submission())
  const least = /"status":400.*must be at least 0\.001: a millisecond/
  await expect(s.control('PATCH', '/settings', { rateLimitWindowSeconds: 1e-7 })).rejects.toThrow(least)
  await expect(s.control('PATCH', '/settings?client=sandbox', { rateLimitWindowSeconds: 0 })).rejects.toThrow(least)
  await expect(s.control('GET', '/rate?windowSeconds=1e-7')).rejects.toThrow(least)
  expect(await s.control('GET', '/rate?windowSeconds=0.001')).toMatchObject({ windowSeconds: 0.001, maxArrived: 1 })
})

describe('a list', () => {
  test('of more than 64 MB is refused, and the message says to ask for fewer rows', async () => {
    await s.database.pool.query(
      `insert into sandbox.ledger (arrived_at, endpoint, method, path, address, body, status, dropped, counted)
       select now(), 'submit', 'POST', '/api/v1/data', '127.0.0.1', repeat('x', 262144), 400, false, false
       from generate_series(1, 300)`,
    )
    await expect(s.control('GET', '/ledger?limit=300')).rejects.toThrow(/"status":413.*Ask for fewer with \?limit=/)
    expect((await s.control('GET', '/ledger?limit=100')).rows).toHaveLength(100)
    expect(
      await s.control('POST', '/verify', { expectations: [{ requests: { status: 400 }, count: 300 }] }),
    ).toMatchObject({ passed: true })
  })

  test('has every row once and in order', async () => {
    await Promise.all(Array.from({ length: 550 }, (_, n) => create(`[${n}]`)))
    const [ledger, orders, queued] = await Promise.all(
      ['/ledger', '/orders', '/events'].map(async (path) => (await s.control('GET', `${path}?limit=520`)).rows),
    )
    expect(ledger.map((row: Json) => row.sequence)).toEqual(Array.from({ length: 520 }, (_, n) => n + 1))
    expect(new Set(orders.map((row: Json) => row.orderId)).size).toBe(520)
    expect(orders.map((row: Json) => row.createdAt)).toEqual(orders.map((row: Json) => row.createdAt).toSorted())
    expect(new Set(queued.map((row: Json) => row.id)).size).toBe(520)
  })
})
