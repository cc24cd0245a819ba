import { beforeEach, describe, expect, test } from 'vitest'
import { type SandboxOptions, startSandbox } from '../../src/sandbox/startSandbox.ts'
import { createDatabase } from '../support/database.ts'
import { openForFile } from '../support/openForFile.ts'
import { type Json, order, type Reply, setup, submission } from './setup.ts'

const one = { id: 'sandbox', secret: 'sandbox-secret' }
const two = { id: 'ci-2', secret: 'second', rateLimitRequests: 5, unknownCustomers: ['Z'] }

const s = openForFile(() => setup({ clients: [one, two], processingTime: 'constant:0' }))
beforeEach(async () => {
  await s.control('DELETE', '/ledger?everything=true')
  await s.control('DELETE', '/faults')
  await s.control('DELETE', '/settings')
})

const askToken = (id: string, secret: string) =>
  s.call(
    'POST',
    '/oauth/token',
    new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: secret }).toString(),
    { 'content-type': 'application/x-www-form-urlencoded' },
  )

type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>

/** Returns a function that calls as a client. */
async function as({ id, secret }: { id: string; secret: string }): Promise<Call> {
  const authorization = `Bearer ${(await askToken(id, secret)).json.access_token}`
  return (method, path, body, headers) => s.call(method, path, body, { authorization, ...headers })
}

const statuses = (replies: readonly Reply[]) => replies.map(({ status }) => status)

describe('a transaction or order of a client', () => {
  test('can be read only by that client', async () => {
    const [mine, theirs] = [await as(one), await as(two)]
    const { transactionId } = (await mine('POST', '/api/v1/data', submission())).json
    const { orderId } = (await mine('POST', '/api/v1/orders', order())).json
    for (const path of [`/api/v1/data/${transactionId}`, `/api/v1/orders/${orderId}`]) {
      expect(statuses([await mine('GET', path), await theirs('GET', path)])).toEqual([200, 404])
    }
  })

  test('may use an id or an idempotency key of another client, but not one of its own again', async () => {
    const [mine, theirs] = [await as(one), await as(two)]
    const chosen = { ...submission(), transactionId: 'T-1' }
    const chosenOrder = { ...order(), orderId: 'a3bb189e-8bf9-4888-9912-ace4e6543009' }
    const key = { 'idempotency-key': 'same' }
    expect(
      statuses([await mine('POST', '/api/v1/data', chosen), await theirs('POST', '/api/v1/data', chosen)]),
    ).toEqual([200, 200])
    expect(
      statuses([
        await mine('POST', '/api/v1/orders', chosenOrder, key),
        await theirs('POST', '/api/v1/orders', chosenOrder, key),
      ]),
    ).toEqual([201, 201])
    const again = [await mine('POST', '/api/v1/data', chosen), await theirs('POST', '/api/v1/orders', order(), key)]
    expect(again.map(({ json }) => json.code)).toEqual(['E002', 'E002'])
  })
})

test('of two transactions with one id, a change affects that of the named client', async () => {
  await s.control('PATCH', '/settings?client=ci-2', { processingTime: 'constant:600' })
  const [mine, theirs] = [await as(one), await as(two)]
  const chosen = { ...submission(), transactionId: 'T-2' }
  await mine('POST', '/api/v1/data', chosen)
  await theirs('POST', '/api/v1/data', chosen)
  const read = async () => [await mine('GET', '/api/v1/data/T-2'), await theirs('GET', '/api/v1/data/T-2')]
  expect((await read()).map(({ json }) => json.status)).toEqual(['completed', 'pending'])
  await s.control('PATCH', '/transactions/T-2?client=ci-2', { finish: 'failed', errorCode: 'E003' })
  expect((await read()).map(({ json }) => json.status)).toEqual(['completed', 'failed'])
})

test('if several clients have the id, a change without a client gets 409, which names them', async () => {
  await s.control('PATCH', '/settings', { processingTime: 'constant:600' })
  const orderId = 'a3bb189e-8bf9-4888-9912-ace4e6543010'
  for (const call of [await as(one), await as(two)]) {
    await call('POST', '/api/v1/data', { ...submission(), transactionId: 'T-3' })
    await call('POST', '/api/v1/orders', { ...order(), orderId })
  }
  for (const [of, id] of [
    ['transaction', 'T-3'],
    ['order', orderId],
  ]) {
    const path = `/${of}s/${id}`
    const answer = await s.call('PATCH', `/_sandbox${path}`, { hold: true })
    expect({ status: answer.status, detail: answer.json.detail }).toEqual({
      status: 409,
      detail: `The ${of} ${id} belongs to several clients: ci-2, sandbox. Choose one with ?client=ID.`,
    })
    const { rows } = await s.control('GET', `/${of}s`)
    expect(rows.map(({ held }: Json) => held)).toEqual([false, false])
    expect(await s.control('PATCH', `${path}?client=ci-2`, { hold: true })).toMatchObject({
      client: 'ci-2',
      held: true,
    })
  }
})

describe('settings of one client', () => {
  test('have its own limit and unknown customers', async () => {
    const [mine, theirs] = [await as(one), await as(two)]
    const unknown = [
      await mine('POST', '/api/v1/data', submission({}, 'Z1')),
      await theirs('POST', '/api/v1/data', submission({}, 'Z1')),
    ]
    expect(unknown.map(({ json }) => json.code)).toEqual([undefined, 'E001'])
    expect(unknown.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual(['9999', '4'])
    for (let n = 0; n < 4; n += 1) await theirs('GET', '/api/v1/data/none')
    expect(statuses([await theirs('GET', '/api/v1/data/none'), await mine('GET', '/api/v1/data/none')])).toEqual([
      429, 404,
    ])
    await s.restart()
    expect(statuses([await theirs('GET', '/api/v1/data/none'), await mine('GET', '/api/v1/data/none')])).toEqual([
      429, 404,
    ])
  })

  test('can be changed, survive a restart, and can be reset', async () => {
    const [mine, theirs] = [await as(one), await as(two)]
    const shown = await s.control('PATCH', '/settings?client=ci-2', { down: true, rateLimitRequests: 50 })
    expect(shown).toMatchObject({ down: true, rateLimitRequests: 50, changed: ['rateLimitRequests', 'down'] })
    await s.restart()
    expect(s.sandbox.changedSettings.toSorted()).toEqual(['down of ci-2', 'rateLimitRequests of ci-2'])
    expect(statuses([await mine('GET', '/api/v1/data/none'), await theirs('GET', '/api/v1/data/none')])).toEqual([
      404, 503,
    ])
    expect(await s.control('GET', '/settings')).toMatchObject({ down: false, rateLimitRequests: 10_000 })
    expect(await s.control('DELETE', '/settings?client=ci-2')).toMatchObject({ down: false, rateLimitRequests: 5 })
    await expect(s.control('PATCH', '/settings?client=ci-2', { seed: 1 })).rejects.toThrow('seed')
  })
})

describe('parallel jobs share a sandbox', () => {
  const made = async (call: Call) => {
    await call('POST', '/api/v1/data', submission())
    await call('POST', '/api/v1/orders', order())
  }
  const views = ['/ledger', '/transactions', '/orders', '/events']
  const sizes = async (query: string): Promise<number[]> => {
    const all = []
    for (const view of views) all.push((await s.control('GET', `${view}${query}`)).rows.length)
    return all
  }

  test('each job can list only its own requests', async () => {
    await made(await as(one))
    await made(await as(two))
    expect(await sizes('')).toEqual([6, 2, 2, 2])
    expect(await sizes('?client=ci-2')).toEqual([3, 1, 1, 1])
    const { rows } = await s.control('GET', '/ledger?client=ci-2')
    expect(rows.map(({ endpoint, client }: Json) => [endpoint, client])).toEqual([
      ['token', 'ci-2'],
      ['submit', 'ci-2'],
      ['order', 'ci-2'],
    ])
    expect((await s.control('GET', '/counts?client=ci-2')).rows.map(({ requests }: Json) => requests)).toEqual([
      1, 1, 1,
    ])
    expect(await s.control('GET', '/rate?client=ci-2')).toMatchObject({ requests: 2, maxArrived: 2, maxAdmitted: 2 })
    await expect(s.control('GET', '/ledger?client=ci-3')).rejects.toThrow('the clients are sandbox, ci-2')
  })

  test('each job resets only its own data', async () => {
    await made(await as(one))
    const theirs = await as(two)
    await made(theirs)
    for (let n = 0; n < 3; n += 1) await theirs('GET', '/api/v1/data/none')
    expect((await theirs('GET', '/api/v1/data/none')).status).toBe(429)
    await s.control('DELETE', '/ledger?client=ci-2')
    expect((await theirs('GET', '/api/v1/data/none')).status).toBe(404)
    expect(await sizes('?client=ci-2')).toEqual([1, 1, 1, 1])
    await s.control('DELETE', '/ledger?client=ci-2&everything=true')
    expect(await sizes('?client=ci-2')).toEqual([0, 0, 0, 0])
    expect(await sizes('')).toEqual([3, 1, 1, 1])
  })

  test('a fault may be for one client, and another client’s reset does not change its remaining count', async () => {
    const [mine, theirs] = [await as(one), await as(two)]
    await s.control('POST', '/faults', { kind: 'answer', status: 502, times: 3 })
    expect(statuses([await mine('GET', '/api/v1/data/none'), await theirs('GET', '/api/v1/data/none')])).toEqual([
      502, 502,
    ])
    await s.control('DELETE', '/ledger?client=ci-2')
    await s.restart()
    expect((await s.control('GET', '/faults')).rows).toMatchObject([{ hits: 2, left: 1 }])
    await s.control('DELETE', '/faults')

    await s.control('POST', '/faults', { kind: 'answer', status: 500, client: 'ci-2' })
    await s.control('POST', '/faults', { kind: 'answer', status: 418, endpoint: 'token', client: 'sandbox' })
    expect(statuses([await mine('GET', '/api/v1/data/none'), await theirs('GET', '/api/v1/data/none')])).toEqual([
      404, 500,
    ])
    expect(statuses([await askToken(one.id, one.secret), await askToken(two.id, two.secret)])).toEqual([418, 200])
    expect((await s.control('GET', '/faults?client=ci-2')).rows).toHaveLength(1)
    expect(await s.control('DELETE', '/faults?client=ci-2')).toEqual({ removed: 1 })
    expect((await s.control('GET', '/faults')).rows).toHaveLength(1)
    await expect(s.control('POST', '/faults', { kind: 'drop', client: 'typo' })).rejects.toThrow('no such client')
  })
})

test('a token is refused while its client is removed and after its revocation, and other tokens stay valid', async () => {
  await using database = await createDatabase('sandbox_template')
  const start = (clients: SandboxOptions['clients']) => startSandbox({ databaseUrl: database.url, port: 0, clients })
  const fetchToken = async (url: string, client_id: string, client_secret: string) => {
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
    const answer: Json = await (await fetch(`${url}/oauth/token`, { method: 'POST', body: form })).json()
    return answer.access_token
  }
  const read = async (url: string, ...tokens: string[]) => {
    const all = tokens.map((token) =>
      fetch(`${url}/api/v1/data/none`, { headers: { authorization: `Bearer ${token}` } }),
    )
    return (await Promise.all(all)).map(({ status }) => status)
  }
  const before = await start([
    { id: 'a', secret: 'a' },
    { id: 'b', secret: 'b' },
    { id: 'c', secret: 'c' },
  ])
  const tokens = await Promise.all(['a', 'b', 'c'].map((id) => fetchToken(before.url, id, id)))
  expect(await fetchToken(before.url, 'a', 'b')).toBeUndefined()
  expect(await read(before.url, ...tokens)).toEqual([404, 404, 404])
  await before.close()

  const without = await start([
    { id: 'a', secret: 'other' },
    { id: 'b', secret: 'b' },
  ])
  expect(await read(without.url, ...tokens)).toEqual([404, 404, 401])
  await without.close()

  await using back = await start([
    { id: 'a', secret: 'a' },
    { id: 'b', secret: 'b' },
    { id: 'c', secret: 'c' },
  ])
  const fresh = await fetchToken(back.url, 'c', 'c')
  await fetch(`${back.url}/_sandbox/tokens/revoke?client=b`, { method: 'POST' })
  expect(await read(back.url, ...tokens, fresh)).toEqual([404, 401, 404, 404])
})
