import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readJson, textOf } from '../../src/service/readJson.ts'
import { submittedId, transactionStatus } from '../../src/service/responses.ts'

test.each(['1.10', '0.1', '12345678901234567890', '1e400', '-0', '1E3', '7'])('%s keeps its digits', (digits) => {
  expect(JSON.stringify(readJson(`{"a":[${digits}]}`, []))).toBe(`{"a":[${digits}]}`)
})

test('plain numbers stay numbers', () => {
  expect(readJson('{"a":7,"b":1.5}', [])).toEqual({ a: 7, b: 1.5 })
})

test('what Postgres refuses in text becomes U+FFFD, in keys too', () => {
  expect(readJson('{"a\\u0000":["\\u0000","\\ud800"]}', [])).toEqual({ 'a\uFFFD': ['\uFFFD', '\uFFFD'] })
})

test('a secret is redacted in strings and leaves numbers alone', () => {
  expect(readJson('{"a":"x 12 y","b":12}', ['12', ''])).toEqual({ a: 'x [redacted] y', b: 12 })
})

test('a short secret changes no id, status or code, wherever it is part of one; words it does', () => {
  const read = readJson('{"transactionId":"test-95","status":"failed","errorCode":"E001","result":{"a":"a test"}}', [
    'test',
    'a',
    'E0',
  ])
  expect(transactionStatus('data', read)).toEqual({
    transactionId: 'test-95',
    status: 'failed',
    errorCode: 'E001',
    result: '{"a":"[redacted] [redacted]"}',
  })
})

test('not even a long one changes the interface’s own words; an id that has it is none', () => {
  const read = readJson('{"transactionId":"x-completed","status":"completed"}', ['completed'])
  expect(read).toEqual({ transactionId: 'x-[redacted]', status: 'completed' })
  expect(submittedId('data', read)).toBeNull()
})

test.each(['""', '"  "', '"null"', '"undefined"', '"NULL"'])('%s is no id', (id) => {
  expect(submittedId('data', readJson(`{"transactionId":${id}}`, []))).toBeNull()
})

test.each(['', 'nope', '{"a":', '[1,]', '['.repeat(500_000)])('what is no JSON is undefined', (text) => {
  expect(readJson(text, [])).toBeUndefined()
})

test('any JSON comes back as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: true }), (value) => {
      const text = JSON.stringify(value)
      fc.pre(!text.includes('\\u0000') && !text.includes('__proto__'))
      expect(JSON.stringify(readJson(text, []))).toBe(text)
    }),
  )
})

test('an id may be a number, with its own digits', () => {
  expect(textOf(readJson('12345678901234567890', []))).toBe('12345678901234567890')
  expect(textOf('a')).toBe('a')
  expect(textOf(7)).toBe('7')
  for (const other of [null, undefined, true, {}, []]) expect(textOf(other)).toBeNull()
})
