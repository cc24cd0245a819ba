import { describe, expect, test, vi } from 'vitest'
import { maskBody, maskUnknownPath } from '../../../src/sandbox/gate/maskSecrets.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type Json, setup, submission } from '../setup.ts'

const form = 'application/x-www-form-urlencoded'
const json = 'application/json'
const isSecret = (text: string) => text.includes('s3cret-of-ours')

describe('a body', () => {
  const mask = (endpoint: 'submit' | 'token' | 'other', contentType: string, body: string) =>
    maskBody({ endpoint, contentType, body }, isSecret)

  test.each([
    'client_secret',
    'clientSecret',
    'Client-Secret',
    'CLIENT SECRET',
    'password',
    'access_token',
    'client_assertion',
    'Authorization',
    'apiKey',
    'pass_phrase',
  ])('has its %s masked in JSON and in a form, and everything else unchanged', (name) => {
    expect(mask('submit', json, `{"a": 1.50, "b": [{"${name}": "pw"}], "c": 1e2}`)).toBe(
      `{"a": 1.50, "b": [{"${name}": "***"}], "c": 1e2}`,
    )
    const encoded = new URLSearchParams({ field1: 'x', [name]: 'pw' }).toString()
    expect(mask('submit', form, encoded)).toBe(encoded.replace('=pw', '=***'))
  })

  test.each([
    '{"field2": "the token is a word", "n": 1.50}',
    '{ "note" : "\\"client_secret\\" is a field" }',
    'not json',
    '',
  ])('%s is kept unchanged', (body) => {
    expect(mask('submit', json, body)).toBe(body)
  })

  test.each([
    ['a truncated body', json, '{"client_secret": "pw'],
    ['a duplicate name', json, '{"a": {"client_secret": "pw"}, "a": 1}'],
    ['a name with an escape', json, '{"client\\u005fsecret": "pw"}'],
    ['plain text', 'text/plain', 'client_secret: pw'],
    ['deeply nested', json, `${'[{"secret":'.repeat(20_000)}"pw"`],
  ])('has its secret masked in %s', (_, contentType, body) => {
    expect(mask('submit', contentType, body)).not.toContain('pw')
  })

  test.each([
    ['clientSecret=pw', 'clientSecret=***'],
    ['client_id=sandbox&client_secert=pw', 'client_id=sandbox&client_secert=***'],
    ['client_id=s3cret-of-ours&client_secret=sandbox', 'client_id=***&client_secret=***'],
    ['client_id=sandbox;client_secret=pw', 'client_id=***'],
    ['client_secret:pw', '***=***'],
    ['s3cret-of-ours', '***=***'],
  ])('sent for a token, %s is stored as %s', (body, kept) => {
    expect(decodeURIComponent(mask('token', form, body))).toBe(kept)
  })

  test('that is not a form, or was sent to no endpoint, is replaced by its length', () => {
    expect(mask('token', json, '{"client_secret":"pw"}')).toBe('(22 characters, left out: no form)')
    expect(mask('other', form, 'client_secret=pw')).toBe('(16 characters, left out: sent to no endpoint)')
  })
})

test.each([
  ['/elsewhere', '/elsewhere'],
  ['/api/v2/data/17', '/api/v2/data/17'],
  ['/oauth/token/', '/oauth/token/'],
  ['/oauth/token/swordfish', '/oauth/token/(9)'],
  ['/s3cret-of-ours/v1', '/(14)/v1'],
  ['/client_secret=pw', '/(16)'],
  ['/api/v1/data/%', '/api/v1/data/(1)'],
  ['/', '/'],
])('the unknown path %s is stored as %s', (path, kept) => {
  expect(maskUnknownPath(path)).toBe(kept)
})

describe('a mistaken client', () => {
  const secret = 'Xy7-s3cret-of-ours'
  const s = openForFile(() => setup({ clientSecret: secret }))

  test('leaves no secret in the database or on stderr', async () => {
    const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const send = (path: string, contentType: string, body: string) =>
      fetch(s.sandbox.url + path, { method: 'POST', headers: { 'content-type': contentType }, body })
    const fields = ['client_secret', 'clientSecret', 'Client-Secret', 'client_secert', 'secret', 'password']
    const paths = [
      '/oauth/token',
      '/oauth/token/',
      '/token',
      '/OAUTH/TOKEN',
      '/oauth//token',
      '/api/v1/data',
      '/api/v1/orders',
    ]
    for (const path of paths) {
      for (const field of fields.filter((name) => path.includes('oauth') || name !== 'client_secert')) {
        const body = { grant_type: 'client_credentials', client_id: 'sandbox', [field]: secret }
        await send(path, form, new URLSearchParams(body).toString())
        await send(path, json, JSON.stringify(body))
        await send(path, 'text/plain', `${field}: ${secret}`)
        await send(`${path}?${field}=${secret}`, form, '')
      }
    }
    await send(`/oauth/token/${secret}`, form, '')
    await send(`/oauth/token&client_secret=${secret}`, form, '')
    await send('/oauth/token', form, `client_id=${secret}&client_secret=sandbox`)
    await s.control('GET', '/ledger') // waits until the ledger is written
    const { rows } = await s.database.pool.query('select l::text as row from sandbox.ledger l')
    expect(rows.length).toBeGreaterThan(100)
    expect(rows.filter(({ row }) => row.includes(secret))).toEqual([])
    expect(stderr.mock.calls.join()).not.toContain(secret)
    stderr.mockRestore()
  })

  test('whose data has a field like a secret still gets a replay for its idempotency key', async () => {
    await s.control('PATCH', '/settings', { idempotency: 'replay' })
    const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: secret }
    const granted = await fetch(`${s.sandbox.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    const { access_token }: Json = await granted.json()
    const headers = { authorization: `Bearer ${access_token}`, 'idempotency-key': 'k' }
    const body = JSON.stringify(submission({ token: 'a', amount: 1 }))
    const first = await s.call('POST', '/api/v1/data', body, headers)
    expect((await s.call('POST', '/api/v1/data', body, headers)).json).toEqual(first.json)
    const [, row] = (await s.control('GET', '/ledger?idempotencyKey=k')).rows
    expect(JSON.parse(row.body).data).toMatchObject({ token: '***', amount: 1 })
  })
})
