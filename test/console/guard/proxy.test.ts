import { afterAll, beforeAll, expect, test } from 'vitest'
import { asForm, tokenIn } from '../openConsole.ts'
import { type Guarded, openGuarded } from './openGuarded.ts'

/** A console that trusts a proxy at 127.0.0.7. */

const proxy = '127.0.0.7'

let served: Guarded
beforeAll(async () => {
  served = await openGuarded({ trustHeader: 'x-forwarded-user', trustProxy: [proxy] })
})
afterAll(() => served[Symbol.asyncDispose]())

const asAnn = {
  'x-forwarded-user': 'ann@example.com',
  'x-forwarded-host': 'console.example',
  'x-forwarded-proto': 'https',
}

test('a request through the proxy acts under the name in its header, under any host name', async () => {
  const headers = { ...asAnn, host: 'console.example' }
  const csrf = tokenIn(await served.ask('/change', { from: proxy, headers }))
  const body = new URLSearchParams({ csrf }).toString()
  const post = (more: Record<string, string>) =>
    served.ask('/change', {
      method: 'POST',
      from: proxy,
      headers: { ...asForm('https://console.example'), ...more },
      body,
    })
  expect(await post(headers)).toMatchObject({ status: 303 })
  expect(await post({ ...headers, host: '10.0.0.5:9465' })).toMatchObject({ status: 303 }) // as nginx sets the Host
  expect(served.changes.splice(0)).toEqual(['operator ann@example.com', 'operator ann@example.com'])
  expect(await post({ ...headers, 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 })
  expect(await post({ ...headers, 'x-forwarded-user': 'bob' })).toMatchObject({ status: 403 }) // with ann's token
  expect(served.changes).toEqual([])
})

test.each(['127.0.0.1', '127.0.0.8'])('a request from %s is refused even with the proxy’s headers', async (from) => {
  for (const path of ['/change', '/now/version', '/assets/console.js']) {
    const answered = await served.ask(path, { from, headers: { ...asAnn, 'x-forwarded-for': proxy } })
    expect(answered).toMatchObject({ status: 403 })
    expect(answered.text).toContain('answers only its proxy')
  }
})

test.each<[string, Record<string, string | string[]>]>([
  ['no name', {}],
  ['an empty name', { 'x-forwarded-user': ' ' }],
  ['two names', { 'x-forwarded-user': ['ann', 'eve'] }],
  ['a name that is too long', { 'x-forwarded-user': 'a'.repeat(101) }],
])('a request through the proxy with %s is refused', async (_, headers) => {
  const answered = await served.ask('/change', { from: proxy, headers })
  expect(answered).toMatchObject({ status: 401 })
  expect(answered.text).toContain('The proxy did not name the user')
})

test('a name is read as UTF-8', async () => {
  const name = Buffer.from('Zoë').toString('latin1')
  const { text } = await served.ask('/change', { from: proxy, headers: { 'x-forwarded-user': name } })
  expect(text).toContain('operator Zoë')
})
