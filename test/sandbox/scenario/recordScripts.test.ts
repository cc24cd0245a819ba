import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { type Json, order, setup, submission } from '../setup.ts'

/** The example of docs/start/sandbox.md, step by step. The tests run in order. */
describe('docs/scenarios/refused-then-taken.yaml', () => {
  const on = openForFile(() => setup({ scenario: 'docs/scenarios/refused-then-taken.yaml' }))
  const record = submission({ field1: 'value2' }, 'C-17')
  const submit = (body: unknown) => on.call('POST', '/api/v1/data', body)
  const status = async (id: string) => (await on.call('GET', `/api/v1/data/${id}`)).json

  /** Sends the record until it is accepted. @returns its id */
  async function sendUntilTaken(): Promise<string> {
    const answers: Json[] = []
    for (let n = 0; n < 3; n += 1) answers.push((await submit(record)).json)
    expect(answers.map(({ code }) => code)).toEqual(['E003', 'E003', undefined])
    return answers[2].transactionId
  }

  test('the first request gets the fault, the clock is stopped, and the settings are in force', async () => {
    expect(await on.token()).toBe('undefined')
    expect(await on.control('GET', '/clock')).toMatchObject({ now: '2026-01-01T00:00:00.000000Z', stands: true })
    expect(await on.control('GET', '/settings')).toMatchObject({ seed: 7, unknownCustomers: ['GONE'], changed: [] })
  })

  test('a record is refused twice, then accepted, pending for two polls and then failed, also over a restart', async () => {
    const id = await sendUntilTaken()
    expect((await status(id)).status).toBe('pending')
    await on.restart()
    expect((await status(id)).status).toBe('pending')
    for (let n = 0; n < 2; n += 1) expect(await status(id)).toMatchObject({ status: 'failed', errorCode: 'E001' })
  })

  test('the record sent again with its own id is accepted at once', async () => {
    expect((await submit({ ...record, transactionId: 'its-own' })).json.status).toBe('accepted')
  })

  test('a fault in the list of statuses affects one poll', async () => {
    const id = (await submit(submission({ field2: 'slow one' }))).json.transactionId
    expect((await status(id)).status).toBe('pending')
    await expect(status(id)).rejects.toThrow('fetch failed')
    expect([(await status(id)).status, (await status(id)).status]).toEqual(['pending', 'completed'])
  })

  test('verify reports each expectation that held or failed', async () => {
    const { status, json } = await on.call('POST', '/_sandbox/verify')
    expect([status, json.passed]).toEqual([422, false])
    expect(json.expectations.map(({ passed, expected, found }: Json) => [passed, expected, found])).toEqual([
      [false, 'exactly 3', 4],
      [false, 'exactly 1', 2],
      [true, 'none', 0],
      [true, 'none', 0],
    ])
    expect(json.expectations[1]).toMatchObject({
      name: 'it is taken once',
      sequences: [expect.any(Number), expect.any(Number)],
    })
  })

  test('after everything is deleted, the scenario starts over, and verify passes', async () => {
    await on.control('DELETE', '/ledger?everything=true')
    expect(await on.token()).toBe('undefined')
    await sendUntilTaken()
    expect(await on.control('POST', '/verify')).toMatchObject({ passed: true })
  })
})

describe('expectations in a request to verify', () => {
  const on = openForFile(() => setup({ processingTime: 'constant:600' }))
  beforeAll(async () => {
    await on.call('POST', '/api/v1/data', submission({ total_amount: 12.5 }, 'C-1'))
    await on.call('POST', '/api/v1/orders', order([{ sku: 'A' }]))
    await on.call('GET', '/api/v1/nowhere')
  })

  const verify = async (...expectations: unknown[]) => on.call('POST', '/_sandbox/verify', { expectations })

  test.each([
    [{ endpoint: 'submit' }, 1],
    [{ endpoint: ['submit', 'order'], applied: true }, 2],
    [{ method: 'POST', path: '/api/v1/orders', client: 'sandbox', status: 201 }, 1],
    [{ path: { pattern: '^/api/' }, status: [404, 'dropped'] }, 1],
    [{ body: { 'data.total_amount': 12.5, customerId: { pattern: '^C-' } } }, 1],
    [{ body: { 'items.0.sku': 'A', transactionId: { exists: false } } }, 1],
    [{ endpoint: 'token', body: { grant_type: 'client_credentials' } }, 1],
    [{ endpoint: 'submit', body: { 'data.total_amount': '12.5' } }, 0],
    [{ endpoint: 'submit', idempotencyKey: { exists: true } }, 0],
  ])('requests that match %j are found %i times', async (requests, count) => {
    expect(await verify({ requests, count })).toMatchObject({ status: 200, json: { passed: true } })
    expect((await verify({ requests, count: count + 1 })).status).toBe(422)
  })

  test('an invalid pattern is reported with its place', async () => {
    const { status, json } = await verify({ requests: { path: { pattern: '(' } } })
    expect(status).toBe(400)
    expect(json.detail).toContain('must be a regular expression')
    expect(json.detail).toContain('at expectations[0].requests.path.pattern')
  })

  test('numbers are compared by value', async () => {
    await on.call('POST', '/api/v1/data', JSON.stringify(submission({ price: 12.5 }, 'C-20')).replace('12.5', '12.50'))
    const found = async (number: string) => {
      const asked = `{"expectations":[{"requests":{"body":{"customerId":"C-20","data.price":${number}}}}]}`
      return (await on.call('POST', '/_sandbox/verify', asked)).json.expectations[0].found
    }
    expect([await found('12.50'), await found('125e-1'), await found('12.51')]).toEqual([1, 1, 0])
  })

  test('the length of an array cannot be matched', async () => {
    expect((await verify({ requests: { body: { 'items.length': 1 } } })).json.expectations[0].found).toBe(0)
    expect((await verify({ requests: { body: { 'items.length': { exists: true } } } })).status).toBe(422)
  })

  test('the nearest request is named with its differences', async () => {
    const requests = { endpoint: 'submit', status: 200, body: { customerId: 'C-2', 'data.field3': 'x' } }
    const { json } = await verify({ requests })
    expect(json.expectations[0]).toMatchObject({ name: 'expectation 1', expected: 'at least 1', found: 0 })
    expect(json.expectations[0].nearest[0]).toMatchObject({
      method: 'POST',
      path: '/api/v1/data',
      status: 200,
      differences: [
        { field: 'body.customerId', expected: 'C-2', found: 'C-1' },
        { field: 'body.data.field3', expected: 'x', found: '(not there)' },
      ],
    })
  })

  test('a difference shows only the beginning of a long value', async () => {
    await on.call('POST', '/api/v1/data', submission({ field2: 'long '.repeat(10_000) }, 'C-9'))
    const { json } = await verify({ requests: { body: { customerId: 'C-9', 'data.field2': 'short', data: null } } })
    const [{ differences }] = json.expectations[0].nearest
    expect(differences.map(({ found }: Json) => found.length)).toEqual([201, 201])
  })

  test('without expectations verify is refused, and an invalid one is reported with its place', async () => {
    expect((await on.call('POST', '/_sandbox/verify')).json.detail).toContain('There is nothing to verify')
    const wrong = await verify(
      { requests: { endpoint: 'submits' } },
      { requests: {}, count: 1, atMost: 2 },
      { requests: {}, atLeast: 5, atMost: 2 },
    )
    expect(wrong.status).toBe(400)
    expect(wrong.json.detail).toContain('expectations[2].atMost')
    expect(wrong.json.detail).toContain('expectations[0].requests.endpoint')
    expect(wrong.json.detail).toContain('expectations[1].count')
  })
})

test('a scenario may be an object and script orders, and a restart does not create its faults again', async () => {
  const slow = { endpoint: 'order' as const, match: {}, statuses: ['pending', 'completed'] }
  await using on = await setup({ scenario: { faults: [{ kind: 'drop', times: 5 }], records: [slow] } })
  expect(await on.control('GET', '/faults')).toMatchObject({ rows: [{ left: 5 }] })
  await on.control('DELETE', '/faults')
  await on.restart()
  const { orderId } = (await on.call('POST', '/api/v1/orders', order())).json
  const status = async () => (await on.call('GET', `/api/v1/orders/${orderId}`)).json.status
  expect([await status(), await status(), await status()]).toEqual(['pending', 'completed', 'completed'])
})

test('a scenario may define clients, and script the records of one of them', async () => {
  const clients = ['sandbox', 'ci-2'].map((id) => ({ id, secret: 'sandbox-secret', idempotency: 'ignore' as const }))
  const records = [{ client: 'ci-2', match: {}, answers: [{ kind: 'answer' as const, status: 500 }] }]
  await using on = await setup({ scenario: { clients, records } })
  expect(on.sandbox.clientIds).toEqual(['sandbox', 'ci-2'])
  const form = { grant_type: 'client_credentials', client_id: 'ci-2', client_secret: 'sandbox-secret' }
  const asked = await fetch(`${on.sandbox.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  const { access_token }: Json = await asked.json()
  const submit = async (headers = {}) => (await on.call('POST', '/api/v1/data', submission(), headers)).status
  const second = { authorization: `Bearer ${access_token}` }
  expect([await submit(), await submit(second), await submit(second)]).toEqual([200, 500, 200])
})

test('a scripted transaction ignores the clock, and can be finished by a test', async () => {
  await using on = await setup({ scenario: { records: [{ match: {}, statuses: ['pending'] }] } })
  const { transactionId } = (await on.call('POST', '/api/v1/data', submission())).json
  const status = async () => (await on.call('GET', `/api/v1/data/${transactionId}`)).json.status
  await on.control('POST', '/clock', { advanceSeconds: 600 })
  expect([await status(), await status()]).toEqual(['pending', 'pending'])
  await on.control('PATCH', `/transactions/${transactionId}`, { finish: 'completed' })
  expect(await status()).toBe('completed')
})

test('an invalid scenario file fails the start with line and column', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'scenario-')), 'wrong.yaml')
  writeFileSync(file, 'clok: system\n')
  await expect(setup({ scenario: file })).rejects.toThrow(`${file}:1:1 unknown key "clok"`)
  await expect(setup({ scenario: `${file}.none` })).rejects.toThrow('the file cannot be read')
})
