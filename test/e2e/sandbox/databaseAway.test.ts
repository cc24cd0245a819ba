import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startSandbox } from '../../../src/sandbox/startSandbox.ts'
import { type Json, order, type Setup, setup, submission } from '../../sandbox/setup.ts'
import { createDatabaseOn, startPostgres } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

let s: Setup
beforeAll(async () => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  s = await setup()
})
afterAll(async () => {
  await s[Symbol.asyncDispose]()
  vi.restoreAllMocks()
})

const submit = (headers?: Record<string, string>) => s.call('POST', '/api/v1/data', submission(), headers)

async function stored(): Promise<number> {
  const { rows } = await s.database.pool.query(
    'select (select count(*) from sandbox.transactions)::integer + (select count(*) from sandbox.orders)::integer as n',
  )
  return rows[0].n
}

/** Locks a table while `meanwhile` runs. */
async function whileLocked(table: string, meanwhile: () => Promise<void>): Promise<void> {
  const client = await s.database.pool.connect()
  try {
    await client.query(`begin; lock table ${table}`)
    await meanwhile()
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const waitingForLock = `
  select pid from pg_stat_activity
  where datname = current_database() and application_name = 'outboxd sandbox' and wait_event_type = 'Lock'`

test('if a table is locked, every request gets 503 E003 or 401 within 10 s, and nothing is stored', async () => {
  const { json } = await submit()
  const before = await stored()
  await whileLocked('sandbox.ledger', async () => {
    const begun = performance.now()
    const answers = await Promise.all([
      submit(),
      submit({ 'idempotency-key': 'looked up' }),
      s.call('POST', '/api/v1/orders', order()),
      s.call('GET', `/api/v1/data/${json.transactionId}`),
      s.call('POST', '/oauth/token', 'grant_type=client_credentials&client_id=sandbox&client_secret=sandbox-secret', {
        'content-type': 'application/x-www-form-urlencoded',
      }),
      submit({ authorization: 'Bearer nothing' }),
    ])
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(answers.map((each) => [each.status, each.json.code])).toEqual([
      ...Array(5).fill([503, 'E003']),
      [401, undefined],
    ])
  })
  expect(await stored()).toBe(before)
  expect((await submit()).status).toBe(200)
})

test('if its session is terminated, a submission gets no answer, because it may be stored, and an order E003', async () => {
  for (const path of ['/api/v1/data', '/api/v1/orders']) {
    await whileLocked('sandbox.ledger', async () => {
      const answer = s.call('POST', path, path.endsWith('data') ? submission() : order()).then(
        ({ status }) => status,
        () => 'none',
      )
      await until(
        () => s.database.pool.query(`select pg_terminate_backend(pid) from (${waitingForLock}) as waiting`),
        ({ rowCount }) => rowCount === 1,
      )
      expect(await answer).toBe(path.endsWith('data') ? 'none' : 503)
    })
  }
  expect((await submit()).status).toBe(200)
})

test('if Postgres is down, requests get 503 E003 or 401, and are served again once it is back', async () => {
  await using server = await startPostgres({ fsync: 'off' })
  const databaseUrl = await createDatabaseOn(server.url, 'away')
  const sandbox = await startSandbox({ databaseUrl, port: 0 })
  try {
    const call = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(sandbox.url + path, init)
      return { status: response.status, json: (await response.json()) as Json }
    }
    const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: 'sandbox-secret' }
    const token = () => call('/oauth/token', { method: 'POST', body: new URLSearchParams(form) })
    const headers = { authorization: `Bearer ${(await token()).json.access_token}`, 'content-type': 'application/json' }
    const post = () => call('/api/v1/data', { method: 'POST', headers, body: JSON.stringify(submission()) })
    const { json } = await post()
    const get = () => call(`/api/v1/data/${json.transactionId}`, { headers })

    process.kill(server.pid, 'SIGQUIT')
    // The server ends after its sessions. Until then a session may still answer although another request got 503.
    await vi.waitFor(() => expect(() => process.kill(server.pid, 0)).toThrow('ESRCH'), { timeout: 10_000 })
    await until(get, ({ status }) => status === 503)
    expect(await call('/_sandbox/counts')).toMatchObject({ status: 503 })
    const answers = [await token(), await post(), await get(), await call('/api/v1/data/none')]
    expect(answers.map((each) => [each.status, each.json.code])).toEqual([
      ...Array(3).fill([503, 'E003']),
      [401, undefined],
    ])
    await server.restartImmediately()
    expect((await until(get, ({ status }) => status === 200)).json.transactionId).toBe(json.transactionId)
    expect((await post()).status).toBe(200)
  } finally {
    await sandbox.close()
  }
})
