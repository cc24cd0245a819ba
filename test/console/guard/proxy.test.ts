import { afterAll, beforeAll, expect, test } from 'vitest'
import { asForm, tokenIn } from '../openConsole.ts'
import { type Guarded, openGuarded } from './openGuarded.ts'

/** A console that believes a proxy, which asks it from 127.0.0.7. */

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

test('who comes through the proxy acts under the name that it gives, whatever name the console has there', async () => {
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
  expect(await post({ ...headers, host: '10.0.0.5:9465' })).toMatchObject({ status: 303 }) // as nginx sets it
  expect(served.changes.splice(0)).toEqual(['operator ann@example.com', 'operator ann@example.com'])
  expect(await post({ ...headers, 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 })
  expect(await post({ ...headers, 'x-forwarded-user': 'bob' })).toMatchObject({ status: 403 }) // with ann's token
  expect(served.changes).toEqual([])
})

test.each(['127.0.0.1', '127.0.0.8'])('%s is not the proxy, whatever it says', async (from) => {
  for (const path of ['/change', '/now/version', '/assets/console.js']) {
    const answered = await served.ask(path, { from, headers: { ...asAnn, 'x-forwarded-for': proxy } })
    expect(answered).toMatchObject({ status: 403 })
    expect(answered.text).toContain('answers only its proxy')
  }
})

test.each<[string, Record<string, string | string[]>]>([
  ['no name', {}],
  ['an empty one', { 'x-forwarded-user': ' ' }],
  ['two', { 'x-forwarded-user': ['ann', 'eve'] }],
  ['one that is none', { 'x-forwarded-user': 'a'.repeat(101) }],
])('a proxy that gives %s lets nobody in', async (_, headers) => {
  const answered = await served.ask('/change', { from: proxy, headers })
  expect(answered).toMatchObject({ status: 401 })
  expect(answered.text).toContain('The proxy did not name the user')
})

test('a name is read as UTF-8', async () => {
  const name = Buffer.from('Zoë').toString('latin1')
  const { text } = await served.ask('/change', { from: proxy, headers: { 'x-forwarded-user': name } })
  expect(text).toContain('operator Zoë')
})
