import { get } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { order, type Setup, setup, submission } from './setup.ts'

let s: Setup
beforeAll(async () => {
  s = await setup({ processingTime: 'constant:36000' })
})
afterAll(() => s[Symbol.asyncDispose]())

interface Form {
  method: string
  action: string
  fields: { name: string; value: string; type: string }[]
}

async function page() {
  const response = await fetch(`${s.sandbox.url}/_sandbox/`)
  expect(response.status).toBe(200)
  return { headers: response.headers, text: await response.text() }
}

const unescaped = (text: string) =>
  text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))).replaceAll('&amp;', '&')

/** What assets/sandbox.js reads of each form. */
function formsOf(text: string): Form[] {
  return [...text.matchAll(/<form [^>]*data-method="(\w+)" action="([^"]+)">([\s\S]*?)<\/form>/g)].map(
    ([, method = '', action = '', inside = '']) => ({
      method,
      action: unescaped(action),
      fields: [...inside.matchAll(/<(?:input|select) [^>]*>/g)].map(([tag]) => {
        const attribute = (name: string) => unescaped(new RegExp(`${name}="([^"]*)"`).exec(tag)?.[1] ?? '')
        return { name: attribute(' name'), value: attribute(' value'), type: attribute('data-type') }
      }),
    }),
  )
}

function bodyOf({ fields }: Form): unknown {
  const given = fields.filter(({ value }) => value !== '')
  if (given.length === 0) return undefined
  return Object.fromEntries(
    given.map(({ name, value, type }) => [
      name,
      type === 'number' ? Number(value) : type === 'json' ? JSON.parse(value) : value,
    ]),
  )
}

test('what a client sent is shown as text, and the page runs nothing but its own script', async () => {
  const field2 = `<script>alert(1)</script>"><img src=x onerror='alert(2)'>`
  await s.call('POST', '/api/v1/data', submission({ field2 }))
  await s.call('POST', `/api/v1/<b onclick=alert(3)>`, submission(), { 'idempotency-key': '<i>' })
  const { headers, text } = await page()
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'self'; script-src 'self';/)
  expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
  expect(text.match(/<script[^>]*>/g)).toEqual(['<script src="/_sandbox/assets/sandbox.js" defer>'])
  expect(text).not.toMatch(/<(img|b|i)\b/)
  expect(text).not.toMatch(/<[^>]+ (style|on\w+)=/)
})

test('it shows requests, transactions, faults, the clock and the settings, changed ones as such', async () => {
  const { transactionId } = (await s.call('POST', '/api/v1/data', submission())).json
  const { orderId } = (await s.call('POST', '/api/v1/orders', order())).json
  const fault = await s.control('POST', '/faults', { kind: 'drop', when: 'after' })
  await s.control('PATCH', '/settings', { processingTime: 'constant:7200' })
  const { now } = await s.control('GET', '/clock')
  const { text } = await page()
  for (const shown of [transactionId, orderId, `/_sandbox/faults/${fault.id}`, 'constant:7200', now.slice(0, 10)])
    expect(text).toContain(shown)
  expect(text).toMatch(/<code>processingTime<\/code> <small>changed<\/small>/)
  await s.control('DELETE', '/faults')
  await s.control('DELETE', '/settings')
})

test('each of its forms is a request that the control API takes', async () => {
  await s.call('POST', '/api/v1/data', submission())
  await s.call('POST', '/api/v1/orders', order())
  await s.control('POST', '/faults', { kind: 'garbage', endpoint: 'token', times: 1 })
  const forms = formsOf((await page()).text)
  const [faultForm, others] = [
    forms.filter(({ method, action }) => method === 'POST' && action === '/_sandbox/faults'),
    forms.filter(({ action, method }) => !(method === 'POST' && action === '/_sandbox/faults')),
  ]
  expect(faultForm[0]?.fields.map(({ name }) => name)).toEqual([
    ...['kind', 'endpoint', 'times', 'status', 'code', 'when', 'delayMs'],
  ])
  await s.control('POST', '/faults', {
    kind: 'answer',
    times: 1,
    status: 503,
    code: 'E003',
    when: 'before',
    delayMs: 1,
  })
  // What forgets and what ends comes last, or the others would have nothing left to work on.
  const rank = ({ method, fields }: Form) => (method === 'DELETE' ? 2 : fields[0]?.name === 'finish' ? 1 : 0)
  const done = new Set<string>()
  for (const form of others.toSorted((one, other) => rank(one) - rank(other))) {
    const what = `${form.method} ${form.action.replace(/[\w-]{36}|\d+$/, 'ID').replace('?client=sandbox', '')} ${form.fields[0]?.name ?? ''}`
    if (form.fields[0]?.name === 'finish' && done.has(what)) continue
    await s.control(form.method, form.action.replace('/_sandbox', ''), bodyOf(form))
    done.add(what)
  }
  expect([...done]).toEqual(
    expect.arrayContaining([
      'POST /_sandbox/clock advanceSeconds',
      'PATCH /_sandbox/transactions/ID hold',
      'PATCH /_sandbox/transactions/ID finish',
      'PATCH /_sandbox/orders/ID hold',
      'PATCH /_sandbox/settings seed',
      'DELETE /_sandbox/faults/ID ',
      'DELETE /_sandbox/ledger ',
      'POST /_sandbox/tokens/revoke ',
    ]),
  )
})

test('of several clients each can be looked at alone, and what is done there concerns it alone', async () => {
  const clients = [
    { id: 'one', secret: 'first-secret' },
    { id: 'the other', secret: 'second-secret', rateLimitRequests: 7 },
  ]
  await using several = await setup({ clients })
  const look = async (query: string) => (await fetch(`${several.sandbox.url}/_sandbox/${query}`)).text()
  expect(await look('')).toContain('<a href="/_sandbox/?client=the%20other">the other</a>')
  const alone = await look('?client=the%20other')
  expect(alone).toContain('<strong>the other</strong>')
  expect(alone).toContain('<code class="without-script">7</code>')
  const ofAll = formsOf(alone).filter(
    ({ action, fields }) => !action.includes('client=') && !fields.some(({ name }) => name === 'client'),
  )
  expect(new Set(ofAll.map(({ action }) => action))).toEqual(new Set(['/_sandbox/clock']))
  for (const form of formsOf(alone).filter(({ action }) => action.startsWith('/_sandbox/settings')))
    await several.control(form.method, form.action.replace('/_sandbox', ''), bodyOf(form))
})

test.each(['sandbox.css', 'sandbox.js'])('%s comes with the types that a browser wants', async (name) => {
  const response = await fetch(`${s.sandbox.url}/_sandbox/assets/${name}`)
  expect(response.headers.get('content-type')).toMatch(name.endsWith('css') ? /^text\/css/ : /^text\/javascript/)
  expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  expect((await response.text()).length).toBeGreaterThan(1000)
})

test('another site cannot have it by a name of its own', async () => {
  const { port } = s.sandbox
  const status = await new Promise((resolve) =>
    get({ port, path: '/_sandbox/', headers: { host: 'evil.example' } }, ({ statusCode }) => resolve(statusCode)),
  )
  expect(status).toBe(403)
})
