import { expect, test } from 'vitest'
import { startSandbox } from '../../../src/sandbox/startSandbox.ts'
import { type Json, order, submission } from '../../sandbox/setup.ts'
import { createDatabase } from '../../support/database.ts'
import { type Program, startProgram } from '../../support/program.ts'

interface Running extends AsyncDisposable {
  program: Program
  url: string
}

/** Starts `sandbox` as a process and waits for its line of JSON. */
async function run(databaseUrl: string): Promise<Running> {
  const program = startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    env: { SANDBOX_DATABASE_URL: databaseUrl, SANDBOX_PROCESSING_TIME: 'constant:1.5' },
  })
  const { url } = JSON.parse(await program.line((line) => line.startsWith('{')))
  return { program, url, [Symbol.asyncDispose]: program[Symbol.asyncDispose] }
}

async function kill({ program }: Running): Promise<void> {
  program.signal('SIGKILL')
  await program.ended()
}

async function headers(url: string): Promise<Record<string, string>> {
  const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: 'sandbox-secret' }
  const response = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  const token: Json = await response.json()
  return { authorization: `Bearer ${token.access_token}`, 'content-type': 'application/json' }
}

test('after kill -9 and a restart, pending transactions end, and used keys are recognised', async () => {
  await using database = await createDatabase('template0')
  await using first = await run(database.url)
  const authorized = await headers(first.url)
  const send = async (url: string, path: string, body?: unknown, more = {}): Promise<Json> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return (await fetch(url + path, { ...init, headers: { ...authorized, ...more } })).json()
  }
  const key = { 'idempotency-key': 'before the kill' }
  const good = await send(first.url, '/api/v1/data', submission(), key)
  const bad = await send(first.url, '/api/v1/data', submission({ field2: 'fail:E002' }))
  const { orderId } = await send(first.url, '/api/v1/orders', order())
  await kill(first)

  await using second = await run(database.url)
  const status = async (path: string) => (await send(second.url, path)).status
  expect((await send(second.url, '/api/v1/data', submission(), key)).code).toBe('E002')
  await expect.poll(() => status(`/api/v1/data/${good.transactionId}`)).toBe('completed')
  await expect.poll(() => status(`/api/v1/orders/${orderId}`)).toBe('completed')
  expect(await send(second.url, `/api/v1/data/${bad.transactionId}`)).toMatchObject({
    status: 'failed',
    errorCode: 'E002',
  })
  expect((await send(second.url, '/_sandbox/events')).rows).toHaveLength(1)
})

test('after kill -9 under load, the ledger has every answered request, and one effect for each key', async () => {
  await using database = await createDatabase('template0')
  await using first = await run(database.url)
  const authorized = await headers(first.url)
  const raised = { method: 'PATCH', headers: authorized, body: '{"rateLimitRequests":100000}' }
  expect((await fetch(`${first.url}/_sandbox/settings`, raised)).status).toBe(200)
  const answered = new Set<string>()
  let sent = 0
  const sending = Array.from({ length: 16 }, async () => {
    for (;;) {
      const key = `k${sent++}`
      const init = {
        method: 'POST',
        body: JSON.stringify(submission()),
        headers: { ...authorized, 'idempotency-key': key },
      }
      const response = await fetch(`${first.url}/api/v1/data`, init).catch(() => undefined)
      if (response?.status !== 200) return
      answered.add(key)
      if (answered.size === 300) first.program.signal('SIGKILL')
    }
  })
  await Promise.all(sending)

  await using second = await run(database.url)
  const { rows } = (await (await fetch(`${second.url}/_sandbox/ledger?limit=100000`)).json()) as Json
  const applied = rows.flatMap((row: Json) => (row.transactionId === null ? [] : [row.idempotencyKey]))
  expect(answered.size).toBeGreaterThanOrEqual(300)
  expect(new Set(applied).size).toBe(applied.length)
  expect([...answered].filter((key) => !applied.includes(key))).toEqual([])
})

test.each([
  ['a newer', 1],
  ['an older', -1],
])('the database of %s outboxd is refused', async (age, step) => {
  await using database = await createDatabase('sandbox_template')
  await database.pool.query('update sandbox.steps set number = number + $1', [step])
  await expect(startSandbox({ databaseUrl: database.url, port: 0 })).rejects.toThrow(
    `the schema sandbox was made by ${age} outboxd. Drop it (\`drop schema sandbox, sandbox_queue cascade\`)`,
  )
})
