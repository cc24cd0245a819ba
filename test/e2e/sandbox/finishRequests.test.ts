import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { type Json, type Setup, setup, submission } from '../../sandbox/setup.ts'
import { createDatabase } from '../../support/database.ts'
import { openForFile } from '../../support/openForFile.ts'
import { startProgram } from '../../support/program.ts'

const s = openForFile(() => setup())

interface Sending {
  /** Idempotency keys whose request was answered 200. */
  answered: Set<string>
  /** Resolves when the server accepts no connection any more. */
  ended: Promise<void>
}

/**
 * Posts on many connections, each request with its own key, until the server accepts none. Calls `onMany` at 100
 * answers.
 */
function keepPosting(url: string, token: string, prefix: string, onMany: () => void): Sending {
  const answered = new Set<string>()
  let sent = 0
  const post = async () => {
    for (;;) {
      const key = `${prefix}${sent++}`
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key }
      const body = JSON.stringify(submission())
      const answer = await fetch(`${url}/api/v1/data`, { method: 'POST', body, headers }).catch(() => undefined)
      if (answer === undefined) return
      if (answer.status === 200) answered.add(key)
      if (answered.size === 100) onMany()
    }
  }
  return { answered, ended: Promise.all(Array.from({ length: 32 }, post)).then(() => {}) }
}

async function appliedKeys(pool: Setup['database']['pool'], prefix: string): Promise<string[]> {
  const { rows } = await pool.query<{ key: string }>(
    'select idempotency_key as key from sandbox.ledger where starts_with(idempotency_key, $1) and transaction_id is not null',
    [prefix],
  )
  return rows.map(({ key }) => key)
}

test('if closed under load, the stored requests are exactly the answered ones, twice in a row', async () => {
  for (const prefix of ['a', 'b']) {
    const closed = Promise.withResolvers<void>()
    const { answered, ended } = keepPosting(
      s.sandbox.url,
      await s.token(),
      prefix,
      () => void s.sandbox.close().then(closed.resolve),
    )
    await ended
    await closed.promise
    expect(new Set(await appliedKeys(s.database.pool, prefix))).toEqual(answered)
    await s.restart()
  }
})

test('on SIGTERM under load, the stored requests are exactly the answered ones, and the exit code is 0', async () => {
  await using database = await createDatabase('sandbox_template')
  await using program = startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    env: { SANDBOX_DATABASE_URL: database.url, SANDBOX_RATE_LIMIT_REQUESTS: '100000' },
  })
  const { url } = JSON.parse(await program.line((line) => line.startsWith('{')))
  const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: 'sandbox-secret' }
  const granted: Json = await (
    await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  ).json()
  const { answered, ended } = keepPosting(url, granted.access_token, 'p', () => program.signal('SIGTERM'))
  await ended
  expect((await program.ended()).code).toBe(0)
  expect(new Set(await appliedKeys(database.pool, 'p'))).toEqual(answered)
})

// Takes over three seconds, because the slow sender gets the whole grace period.
test('closing answers delayed requests, cuts off slow senders, and ends within five seconds', async () => {
  await s.control('POST', '/faults', { kind: 'delay', delayMs: 600_000, pathContains: 'delayed' })
  await s.control('POST', '/faults', { kind: 'drip', intervalMs: 60_000, pathContains: 'dripped' })
  const delayed = s.call('GET', '/api/v1/data/delayed')
  const dripped = s.call('GET', '/api/v1/data/dripped').catch(() => 'cut')
  const slow = connect(s.sandbox.port, '127.0.0.1')
  slow.write('POST /oauth/token HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\ngrant')
  await expect.poll(async () => (await s.control('GET', '/counts')).rows.length).toBeGreaterThan(0)
  await expect.poll(async () => (await s.control('GET', '/faults')).rows.map(({ hits }: Json) => hits)).toEqual([1, 1])
  const begun = performance.now()
  const cut = once(slow, 'close')
  await s.sandbox.close()
  expect(performance.now() - begun).toBeLessThan(5_000)
  expect((await delayed).status).toBe(404)
  expect(await dripped).toBe('cut')
  await cut
})
