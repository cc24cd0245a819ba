import { beforeEach, describe, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { type Json, order, setup, submission } from '../setup.ts'

const s = openForFile(() => setup({ processingTime: 'constant:60' }))
beforeEach(async () => {
  await s.control('DELETE', '/settings')
})

const submit = (body: unknown, headers?: Record<string, string>) => s.call('POST', '/api/v1/data', body, headers)
const read = (id: string) => s.call('GET', `/api/v1/data/${id}`)
const aMinuteLater = () => s.control('POST', '/clock', { advanceSeconds: 60 })
const withKey = (key: string) => ({ 'idempotency-key': key })

describe('processing', () => {
  test('a submission is accepted, pending while it is processed, and completed with a result', async () => {
    const accepted = await submit(submission())
    expect(accepted.status).toBe(200)
    expect(accepted.json).toEqual({
      transactionId: expect.any(String),
      status: 'accepted',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    const id = accepted.json.transactionId
    expect((await read(id)).json).toEqual({ transactionId: id, status: 'pending' })
    await aMinuteLater()
    expect((await read(id)).json).toEqual({
      transactionId: id,
      status: 'completed',
      result: { customerId: 'C1', processedAt: expect.any(String) },
    })
  })

  test('a text in the record makes it fail, with a given code', async () => {
    const { json } = await submit(submission({ field2: 'fail:E003 please' }))
    await aMinuteLater()
    expect((await read(json.transactionId)).json).toMatchObject({ status: 'failed', errorCode: 'E003' })
  })

  test('the configured share of records fails, with the configured code', async () => {
    await s.control('PATCH', '/settings', { failureShare: 1, failureCode: 'E002', processingTime: 'constant:0' })
    const { json } = await submit(submission())
    expect((await read(json.transactionId)).json).toMatchObject({ status: 'failed', errorCode: 'E002' })
  })

  test('a transaction that was never submitted is not found', async () => {
    const answer = await read('6f1f2c0e-0000-4000-8000-000000000000')
    expect(answer.status).toBe(404)
    expect(answer.json).toMatchObject({ status: 404, title: 'Not Found' })
  })

  test('after a restart, a pending transaction is still pending and ends the same way', async () => {
    const { json } = await submit(submission({ field2: 'fail:E001' }))
    await s.restart()
    expect((await read(json.transactionId)).json.status).toBe('pending')
    await aMinuteLater()
    expect((await read(json.transactionId)).json.status).toBe('failed')
  })
})

describe('validation', () => {
  const without = (key: string) => {
    const { [key]: _left, ...rest } = submission()
    return rest
  }

  test.each<[string, unknown, string]>([
    ['no customerId', without('customerId'), 'customerId'],
    ['an empty customerId', submission({}, ''), 'customerId'],
    ['a customerId of 11 characters', submission({}, 'C1234567890'), 'customerId'],
    ['a customerId that is a number', { ...submission(), customerId: 7 }, 'customerId'],
    ['a customerId with a NUL character', submission({}, 'C\u00001'), 'customerId'],
    ['no data', without('data'), 'data'],
    ['data that is a list', { customerId: 'C1', data: [] }, 'data'],
    ['an unknown field1', submission({ field1: 'value4' }), 'data.field1'],
    ['no field1', submission({ field1: undefined }), 'data.field1'],
    ['no field2', submission({ field2: undefined }), 'data.field2'],
    ['a field2 that is a number', submission({ field2: 5 }), 'data.field2'],
    ['an order date without a zone', submission({ order_date: '2026-11-21T10:00:00' }), 'data.order_date'],
    ['an order date that is not UTC', submission({ order_date: '2026-11-21T10:00:00+01:00' }), 'data.order_date'],
    ['a customer_id of 11 characters', submission({ customer_id: 'C1234567890' }), 'data.customer_id'],
    ['a list', [], '(body)'],
    ['null', 'null', '(body)'],
  ])('refuses %s with 400 and the field', async (_what, body, field) => {
    const answer = await submit(body)
    expect(answer.status).toBe(400)
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(answer.json.errors.map((error: { field: string }) => error.field)).toContain(field)
    expect(answer.json.code).toBeUndefined()
  })

  test.each([
    '0.1e3',
    '123456789.00',
    '1.234',
    '-100000000',
    '1e400',
    '12345678901234567890',
    '"1,50"',
    'true',
    'null',
  ])('refuses an amount of %s', async (digits) => {
    const answer = await submit(`{"customerId":"C1","data":{"field1":"value1","field2":"","total_amount":${digits}}}`)
    expect(answer.status).toBe(400)
    expect(answer.json.errors[0].field).toBe('data.total_amount')
  })

  test.each([
    '0',
    '1234.50',
    '-0.05',
    '99999999.99',
    '12.3',
    '"1234.50"',
  ])('accepts an amount of %s', async (digits) => {
    const body = `{"customerId":"C1","data":{"field1":"value1","field2":"","total_amount":${digits}}}`
    expect((await submit(body)).status).toBe(200)
    const { rows } = await s.control('GET', '/ledger?endpoint=submit&limit=100000')
    expect(rows.at(-1).body).toBe(body)
  })

  test('accepts an empty field2, unknown fields and a customerId of 10 characters', async () => {
    expect((await submit({ ...submission({ field2: '', more: { x: 1 } }, 'C123456789'), extra: [] })).status).toBe(200)
  })

  test.each([
    '',
    '{',
    '{"customerId":"C1"',
    'x',
    `${'['.repeat(100_000)}`,
  ])('refuses a body that is not JSON (%#)', async (body) => {
    const answer = await submit(body)
    expect(answer.status).toBe(400)
    expect(answer.json.detail).toBe('The body is not JSON.')
  })

  test('refuses a content type other than JSON', async () => {
    expect((await submit(submission(), { 'content-type': 'text/plain' })).status).toBe(415)
  })
})

describe('E001', () => {
  test.each(['UNKNOWN1', 'X77'])('answers 400 for the customer %s', async (customerId) => {
    const answer = await submit(submission({}, customerId))
    expect(answer.status).toBe(400)
    expect(answer.json).toMatchObject({ code: 'E001', title: 'Invalid customer' })
  })

  test('follows the list of unknown customers', async () => {
    await s.control('PATCH', '/settings', { unknownCustomers: ['C9'] })
    expect((await submit(submission({}, 'X77'))).status).toBe(200)
    expect((await submit(submission({}, 'C99'))).json.code).toBe('E001')
  })
})

describe('an idempotency key used before', () => {
  const effects = async (key: string) => {
    const { rows } = await s.control('GET', `/ledger?idempotencyKey=${key}`)
    return rows.filter((row: { transactionId: string | null }) => row.transactionId !== null).length
  }

  test('is E002', async () => {
    const first = await submit(submission(), withKey('once'))
    const second = await submit(submission(), withKey('once'))
    expect(first.status).toBe(200)
    expect(second.status).toBe(409)
    expect(second.json).toMatchObject({ code: 'E002', title: 'Duplicate transaction' })
    expect(await effects('once')).toBe(1)
  })

  test('is E002 with the configured status, also after a restart', async () => {
    await submit(submission(), withKey('before'))
    await s.control('PATCH', '/settings', { e002Status: 400 })
    await s.restart()
    const again = await submit(submission(), withKey('before'))
    expect({ status: again.status, code: again.json.code }).toEqual({ status: 400, code: 'E002' })
  })

  test('gets the first answer again with idempotency: replay', async () => {
    await s.control('PATCH', '/settings', { idempotency: 'replay' })
    const first = await submit(submission(), withKey('replayed'))
    const second = await submit(submission(), withKey('replayed'))
    expect(second.status).toBe(200)
    expect(second.json).toEqual(first.json)
    expect(await effects('replayed')).toBe(1)
    expect((await submit(submission({ field2: 'other' }), withKey('replayed'))).json.code).toBe('E002')
  })

  test('is ignored with idempotency: ignore', async () => {
    await s.control('PATCH', '/settings', { idempotency: 'ignore' })
    const first = await submit(submission(), withKey('ignored'))
    const second = await submit(submission(), withKey('ignored'))
    expect(second.json.transactionId).not.toBe(first.json.transactionId)
    expect(await effects('ignored')).toBe(2)
  })

  test('is applied once, even if many requests with it arrive at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => submit(submission(), withKey('at once'))))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ json }) => json.code === 'E002')).toHaveLength(19)
    expect(await effects('at once')).toBe(1)
  })

  test('is not used up by a request that was refused', async () => {
    expect((await submit(submission({}, 'X'), withKey('refused'))).status).toBe(400)
    expect((await submit(submission(), withKey('refused'))).status).toBe(200)
  })

  test("or a used transaction id of the client's own is E002, and that id can be polled", async () => {
    const body = { ...submission(), transactionId: 'erp-4711' }
    expect((await submit(body)).json.transactionId).toBe('erp-4711')
    expect((await submit(body)).json.code).toBe('E002')
    expect((await read('erp-4711')).status).toBe(200)
  })
})

describe('being down, and allowed addresses', () => {
  test('answers every request with E003 while it is set to down, also after a restart', async () => {
    await s.control('PATCH', '/settings', { down: true })
    await s.restart()
    const answers = [
      await submit(submission()),
      await read('any'),
      await s.call('POST', '/api/v1/orders', {}),
      await s.call('GET', '/api/v1/orders/any'),
    ]
    for (const answer of answers)
      expect({ status: answer.status, code: answer.json.code }).toEqual({ status: 503, code: 'E003' })
    await s.control('PATCH', '/settings', { down: false, e003Status: 500 })
    expect((await submit(submission())).status).toBe(200)
  })

  test('answers 401 to a valid token from an address that is not allow-listed', async () => {
    await s.control('PATCH', '/settings', { allowedAddresses: ['192.0.2.1'] })
    const answer = await submit(submission())
    expect(answer.status).toBe(401)
    expect(answer.json.detail).toBe('The address 127.0.0.1 is not allow-listed.')
  })
})

describe('orders', () => {
  const s = openForFile(() => setup({ processingTime: 'constant:60' }))
  beforeEach(async () => {
    await s.control('DELETE', '/settings')
  })

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
})
