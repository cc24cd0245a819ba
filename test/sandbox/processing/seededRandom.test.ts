import { expect, test } from 'vitest'
import { type Json, order, type Setup, setup, submission } from '../setup.ts'

interface Step {
  method: string
  path: string
  body?: unknown
}

/**
 * All kinds of requests of a client and a test. `{transaction}` and `{order}` stand for the last ids that were given.
 */
const script: Step[] = [
  ...Array.from({ length: 5 }, () => post('/api/v1/data', submission())),
  post('/api/v1/orders', order()),
  post('/api/v1/data', submission({ field2: 'fail:E003' })),
  { method: 'GET', path: '/api/v1/data/{transaction}' },
  post('/_sandbox/clock', { advanceSeconds: 60 }),
  { method: 'GET', path: '/api/v1/data/{transaction}' },
  { method: 'GET', path: '/api/v1/orders/{order}' },
  post('/_sandbox/faults', { kind: 'answer', status: 500, share: 0.5, endpoint: 'submit' }),
  ...Array.from({ length: 10 }, () => post('/api/v1/data', submission())),
  { method: 'DELETE', path: '/_sandbox/faults' },
  post('/_sandbox/faults', { kind: 'wrong_id', times: 1 }),
  post('/api/v1/data', submission()),
  post('/api/v1/data', { customerId: 'UNKNOWN', data: {} }),
  { method: 'GET', path: '/api/v1/nowhere' },
  { method: 'GET', path: '/_sandbox/ledger' },
  { method: 'GET', path: '/_sandbox/transactions' },
  { method: 'GET', path: '/_sandbox/orders' },
  { method: 'GET', path: '/_sandbox/events' },
  { method: 'GET', path: '/_sandbox/clock' },
]

function post(path: string, body: unknown): Step {
  return { method: 'POST', path, body }
}

const form = new URLSearchParams({
  grant_type: 'client_credentials',
  client_id: 'sandbox',
  client_secret: 'sandbox-secret',
})

/** Asks for a token, then sends the steps. @returns every whole answer: status, headers, body */
async function play(url: string, steps = script): Promise<unknown[]> {
  const answers: unknown[] = []
  const ids = { transaction: '', order: '' }
  const send = async (path: string, init: RequestInit): Promise<Json> => {
    const response = await fetch(url + path, init)
    const text = await response.text()
    answers.push({ path, status: response.status, headers: [...response.headers], text })
    return JSON.parse(text)
  }
  const token = await send('/oauth/token', { method: 'POST', body: form })
  const headers = { authorization: `Bearer ${token.access_token}`, 'content-type': 'application/json' }
  for (const { method, path, body } of steps) {
    const target = path.replace('{transaction}', ids.transaction).replace('{order}', ids.order)
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await send(target, { method, headers, ...json })
    ids.transaction = answer.transactionId ?? ids.transaction
    ids.order = answer.orderId ?? ids.order
  }
  return answers
}

const standing = { seed: 7, clock: '2026-01-01T00:00:00Z' } as const

test('with the same seed and a stopped clock, two new sandboxes answer the same script with the same bytes', async () => {
  await using first = await setup(standing)
  await using second = await setup(standing)
  const answers = await play(first.sandbox.url)
  expect(answers).toHaveLength(script.length + 1)
  expect(JSON.stringify(answers)).toContain('2026-01-01T00:01:00.000Z')
  expect(await play(second.sandbox.url)).toEqual(answers)
})

test('after everything is deleted, a sandbox answers like a new one', async () => {
  const steps = script.filter(({ path }) => !path.includes('faults')) // ids of faults are not reset
  await using on = await setup(standing)
  const answers = await play(on.sandbox.url, steps)
  await on.control('DELETE', '/ledger?everything=true')
  expect(await play(on.sandbox.url, steps)).toEqual(answers)
})

test('with a seed, no id is given twice, even over restarts and beside clients’ own ids', async () => {
  await using on = await setup({ seed: 7 })
  const ids: string[] = []
  for (let n = 0; n < 3; n += 1) {
    ids.push((await on.call('POST', '/api/v1/data', submission())).json.transactionId)
    ids.push((await on.call('POST', '/api/v1/data', { ...submission(), transactionId: `own-${n}` })).json.transactionId)
    ids.push((await on.call('POST', '/api/v1/orders', order())).json.orderId)
    await on.restart()
  }
  expect(new Set(ids).size).toBe(9)
  for (const id of ids.filter((each) => !each.startsWith('own')))
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('with a seed, a client’s answers do not depend on other clients, and repeat after its data are deleted', async () => {
  const one = { id: 'ci-1', secret: 'first' }
  const two = { id: 'ci-2', secret: 'second' }
  const clients = [one, two]
  const play = async (on: Setup, client: typeof one) => {
    const form = { grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret }
    const asked = await fetch(`${on.sandbox.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    const { access_token }: Json = await asked.json()
    const headers = { authorization: `Bearer ${access_token}` }
    const answers = [access_token]
    for (let n = 0; n < 5; n += 1) answers.push((await on.call('POST', '/api/v1/data', submission(), headers)).text)
    return [...answers, (await on.call('POST', '/api/v1/orders', order(), headers)).text]
  }
  await using alone = await setup({ ...standing, clients })
  await using together = await setup({ ...standing, clients })
  const [first, second] = [await play(alone, one), await play(alone, two)]
  expect(await Promise.all([play(together, two), play(together, one)])).toEqual([second, first])
  expect(first.filter((answer) => second.includes(answer))).toEqual([])
  await together.control('DELETE', '/ledger?client=ci-2&everything=true')
  expect(await play(together, two)).toEqual(second)
})

test('another seed gives different ids, and without a seed ids are random', async () => {
  const idWith = async (seed: number | null) => {
    await using on = await setup({ seed })
    return (await on.call('POST', '/api/v1/data', submission())).json.transactionId
  }
  const ids = [await idWith(7), await idWith(8), await idWith(null), await idWith(null)]
  expect(new Set(ids).size).toBe(4)
})
