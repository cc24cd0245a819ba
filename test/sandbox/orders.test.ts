import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Json, order, type Setup, setup } from './setup.ts'

let s: Setup
beforeAll(async () => {
  s = await setup({ processingTime: 'constant:60' })
})
beforeEach(async () => {
  await s.control('DELETE', '/settings')
})
afterAll(() => s[Symbol.asyncDispose]())

const create = (body: unknown, headers?: Record<string, string>) => s.call('POST', '/api/v1/orders', body, headers)
const read = (id: string) => s.call('GET', `/api/v1/orders/${id}`)

test('an order is created pending, read with its items, and completed in time', async () => {
  await s.control('PATCH', '/settings', { processingTime: 'constant:2' })
  const created = await create(order([{ sku: 'A' }]))
  expect(created.status).toBe(201)
  expect(created.json).toEqual({
    orderId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    status: 'pending',
    createdAt: expect.stringMatching(/Z$/),
  })
  const { orderId, createdAt } = created.json
  expect((await read(orderId)).json).toEqual({ orderId, status: 'pending', items: [{ sku: 'A' }], createdAt })
  await s.control('POST', '/clock', { advanceSeconds: 60 })
  expect((await read(orderId)).json.status).toBe('completed')
})

test('when the 201 arrives, the order and its event are both stored', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const { json } = await create(order())
      const { rows } = await s.database.pool.query(
        `select (select count(*)::int from sandbox.orders where id = $1) as orders,
           (select count(*)::int from sandbox_queue.job where name = 'OrderCreated' and data ->> 'subject' = $1::text) as events`,
        [json.orderId],
      )
      return rows[0]
    }),
  )
  for (const found of answers) expect(found).toEqual({ orders: 1, events: 1 })
})

test('an order whose event cannot be queued is not stored, and gets 500', async () => {
  const count = async () => Number((await s.database.pool.query('select count(*) from sandbox.orders')).rows[0].count)
  const before = await count()
  await s.database.pool.query(
    `alter table sandbox_queue.job_common add constraint no_room check (name <> 'OrderCreated') not valid`,
  )
  try {
    const answer = await create(order())
    expect(answer.status).toBe(500)
    expect(answer.text).not.toMatch(/no_room|\.ts|node_modules/)
    expect(await count()).toBe(before)
  } finally {
    await s.database.pool.query('alter table sandbox_queue.job_common drop constraint no_room')
  }
  expect((await create(order())).status).toBe(201)
})

test('the event is a CloudEvents envelope', async () => {
  const { json } = await create(order([1, 'two']))
  const { rows } = await s.control('GET', '/events?limit=10000')
  const queued = rows.find((row: Json) => row.event.subject === json.orderId)
  expect(queued).toEqual({
    id: queued.event.id,
    state: 'created',
    event: {
      specversion: '1.0',
      id: expect.any(String),
      source: '/api/v1/orders',
      type: 'OrderCreated',
      subject: json.orderId,
      time: json.createdAt,
      datacontenttype: 'application/json',
      data: {
        orderId: json.orderId,
        customerId: order().customerId,
        status: 'pending',
        items: [1, 'two'],
        createdAt: json.createdAt,
      },
    },
  })
})

test('amounts in items keep their digits in the answer and in the event', async () => {
  const items = '[{"price":12.50,"big":12345678901234567890.12}]'
  const { json } = await create(`{"customerId":"${order().customerId}","items":${items}}`)
  expect((await read(json.orderId)).text).toContain(`"items":${items}`)
  const response = await fetch(`${s.sandbox.url}/_sandbox/events?limit=10000`)
  expect(await response.text()).toContain('12345678901234567890.12')
})

test.each<[string, unknown]>([
  ['no customerId', { items: [] }],
  ['a customerId that is not a uuid', { ...order(), customerId: 'C1' }],
  ['no items', { customerId: order().customerId }],
  ['items that are an object', { ...order(), items: {} }],
  ['items that are null', { ...order(), items: null }],
  ['items with a NUL character', order(['\u0000'])],
])('refuses %s with 400', async (_what, body) => {
  const answer = await create(body)
  expect(answer.status).toBe(400)
  expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
})

test('accepts empty items, and a text that only looks like a NUL character', async () => {
  expect((await create(order([]))).status).toBe(201)
  expect((await create(order(['\\u0000']))).status).toBe(201)
})

test('answers E001 for an unknown customer', async () => {
  const answer = await create({ ...order(), customerId: '00000000-0000-4000-8000-000000000001' })
  expect({ status: answer.status, code: answer.json.code }).toEqual({ status: 400, code: 'E001' })
})

test('answers E002 for an idempotency key or an order id used before, and stores no second order', async () => {
  const key = { 'idempotency-key': 'order once' }
  const answers = await Promise.all(Array.from({ length: 10 }, () => create(order(), key)))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(9).fill(409)])
  const own = { ...order(), orderId: crypto.randomUUID() }
  expect((await create(own)).json.orderId).toBe(own.orderId)
  expect((await create(own)).json.code).toBe('E002')
  const { rows } = await s.control('GET', '/ledger?idempotencyKey=order%20once')
  expect(rows.filter((row: Json) => row.orderId !== null)).toHaveLength(1)
})

test('replays the first answer with idempotency: replay', async () => {
  await s.control('PATCH', '/settings', { idempotency: 'replay' })
  const first = await create(order(), { 'idempotency-key': 'order again' })
  const second = await create(order(), { 'idempotency-key': 'order again' })
  expect({ status: second.status, json: second.json }).toEqual({ status: 201, json: first.json })
})

test('an order id that is not a uuid gets 400, and an unknown one 404', async () => {
  expect((await read('42')).status).toBe(400)
  expect((await read(crypto.randomUUID())).status).toBe(404)
})
