import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Json, type Reply, type Setup, setup, submission } from './setup.ts'

let s: Setup
beforeAll(async () => {
  s = await setup({ requestTimeoutSeconds: 1, connectionsMax: 50 })
})
beforeEach(async () => {
  await s.control('DELETE', '/settings')
  await s.control('DELETE', '/ledger?everything=true')
})
afterAll(() => s[Symbol.asyncDispose]())

const statuses = (answers: readonly Reply[]) => answers.map(({ status }) => status)

async function ask(secret: string): Promise<Reply> {
  const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: secret }
  const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: '' }
  return s.call('POST', '/oauth/token', new URLSearchParams(form).toString(), headers)
}

describe('without credentials', () => {
  test('requests of a page of another site are refused, and do not count against the limit', async () => {
    await s.call('GET', '/api/v1/data/none') // gets a token first
    await s.control('DELETE', '/ledger')
    await s.control('PATCH', '/settings', { rateLimitTokens: true, rateLimitRequests: 2 })
    const { url } = s.sandbox
    const page = { origin: 'http://evil.example', authorization: '' }
    const form = { ...page, 'content-type': 'application/x-www-form-urlencoded' }
    const image = { authorization: '', 'sec-fetch-site': 'cross-site' }
    for (let times = 0; times < 4; times += 1) {
      const answers = [
        await s.call('POST', '/oauth/token', 'client_id=sandbox&client_secret=wrong', form),
        await s.call('POST', '/oauth/token', 'client_id=sandbox&client_secret=wrong', { ...form, origin: 'null' }),
        await s.call('POST', '/api/v1/data', submission(), page),
        await s.call('GET', '/api/v1/data/x', undefined, image),
      ]
      expect(statuses(answers)).toEqual([403, 403, 403, 403])
    }
    const { rows }: Json = await s.control('GET', '/ledger')
    expect(rows.map(({ counted }: Json) => counted)).not.toContain(true)
    expect((await s.call('POST', '/oauth/token', 'x', { ...form, origin: url })).status).toBe(400)
    expect((await ask('sandbox-secret')).status).toBe(200)
  })
})

describe('connections', () => {
  const open = () => connect(s.sandbox.port, '127.0.0.1')

  test('a request whose body does not come gets 408 after the request timeout', async () => {
    const socket = open()
    socket.write('POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf of it')
    const answer: Buffer[] = []
    socket.on('data', (part: Buffer) => answer.push(part))
    await once(socket, 'close')
    expect(Buffer.concat(answer).toString()).toMatch(/^HTTP\/1.1 408 /)
  })

  test('a silent connection is closed', async () => {
    const silent = open().resume()
    await once(silent, 'close')
  })

  test('connections beyond connectionsMax are closed, and others go on', async () => {
    // An accepted connection gets a 408 at the end. One beyond the limit gets nothing.
    const answered = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = open().on('error', () => {})
        let isAnswered = false
        socket.on('data', () => {
          isAnswered = true
        })
        await new Promise((resolve) => socket.on('close', resolve))
        return isAnswered
      }),
    )
    expect(new Set(answered)).toEqual(new Set([true, false]))
    await expect.poll(async () => (await ask('sandbox-secret').catch(() => ({ status: 0 }))).status).toBe(200)
  })
})
