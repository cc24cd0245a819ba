import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAndMaskJson, parseAnswerJson, textOrDigitsOf } from '../../src/service/readJson.ts'
import { readIdInSubmitAnswer, readTransactionStatus } from '../../src/service/responses.ts'

test.each(['1.10', '0.1', '12345678901234567890', '1e400', '-0', '1E3', '7'])('%s keeps its digits', (digits) => {
  expect(JSON.stringify(parseAndMaskJson(`{"a":[${digits}]}`, []))).toBe(`{"a":[${digits}]}`)
})

test('plain numbers stay numbers', () => {
  expect(parseAndMaskJson('{"a":7,"b":1.5}', [])).toEqual({ a: 7, b: 1.5 })
})

test('characters that Postgres refuses in text become U+FFFD, even in keys', () => {
  expect(parseAndMaskJson('{"a\\u0000":["\\u0000","\\ud800"]}', [])).toEqual({ 'a\uFFFD': ['\uFFFD', '\uFFFD'] })
})

test('a secret is redacted in strings, and not in numbers', () => {
  expect(parseAndMaskJson('{"a":"x 12 y","b":12}', ['12', ''])).toEqual({ a: 'x [redacted] y', b: 12 })
})

test('a long secret is redacted in keys, too, at each depth', () => {
  const read = parseAndMaskJson('{"result":{"S3cr3t+/=&%Value":1,"deep":[{"Bearer S3cr3t+/=&%Value":"x"}]}}', [
    'S3cr3t+/=&%Value',
  ])
  expect(read).toEqual({ result: { '[redacted]': 1, deep: [{ 'Bearer [redacted]': 'x' }] } })
})

test('a short secret is redacted in texts, and not in an id, status or code', () => {
  const read = parseAndMaskJson(
    '{"transactionId":"test-95","status":"failed","errorCode":"E001","result":{"a":"a test"}}',
    ['test', 'a', 'E0'],
  )
  expect(readTransactionStatus('data', read)).toEqual({
    transactionId: 'test-95',
    status: 'failed',
    errorCode: 'E001',
    result: '{"a":"[redacted] [redacted]"}',
  })
})

test('a long secret is not redacted in the interface’s own words, and an id that contains one is not an id', () => {
  const read = parseAndMaskJson('{"transactionId":"x-completed","status":"completed"}', ['completed'])
  expect(read).toEqual({ transactionId: 'x-[redacted]', status: 'completed' })
  expect(readIdInSubmitAnswer('data', read)).toBeNull()
})

test.each([
  '""',
  '"  "',
  '"null"',
  '"undefined"',
  '"NULL"',
  '"."',
  '".."',
])('an id that is blank, `null`, `undefined`, `.` or `..` (%s) is not an id', (id) => {
  expect(readIdInSubmitAnswer('data', parseAndMaskJson(`{"transactionId":${id}}`, []))).toBeNull()
})

test.each(['', 'nope', '{"a":', '[1,]', '['.repeat(500_000)])('text that is not JSON is undefined', (text) => {
  expect(parseAndMaskJson(text, [])).toBeUndefined()
})

test('any JSON is read unchanged', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: true }), (value) => {
      const text = JSON.stringify(value)
      fc.pre(!text.includes('\\u0000') && !text.includes('__proto__'))
      expect(JSON.stringify(parseAndMaskJson(text, []))).toBe(text)
    }),
  )
})

test('an id may be a number, and keeps its digits', () => {
  expect(textOrDigitsOf(parseAndMaskJson('12345678901234567890', []))).toBe('12345678901234567890')
  expect(textOrDigitsOf('a')).toBe('a')
  expect(textOrDigitsOf(7)).toBe('7')
  for (const other of [null, undefined, true, {}, []]) expect(textOrDigitsOf(other)).toBeNull()
})

test.each([
  99, 3_000, 200_000,
])('a result nested %i deep still completes the record, and is stored 100 levels deep at most', (depth) => {
  const result = `${'{"a":['.repeat(depth / 2)}${']}'.repeat(depth / 2)}`
  const json = parseAnswerJson(`{"transactionId":"tx","status":"completed","result":${result},"z":1.10}`, [], true)
  const read = readTransactionStatus('data', json)
  expect(read).toMatchObject({ transactionId: 'tx', status: 'completed' })
  if (depth < 100) expect(read?.result).toBe(result)
  else expect(read?.result).toMatch(/^.{1,500}"\[nested deeper than 100 levels\]"[\]}]+$/)
})

test('of two values that are nested too deep each is left out, and the text between them stays', () => {
  const deep = `${'['.repeat(3_000)}"]}"${']'.repeat(3_000)}`
  expect(parseAndMaskJson(`{"a":${deep},"b":7,"c":{"d":${deep}},"e":8}`, [])).toMatchObject({ b: 7, e: 8 })
  expect(parseAndMaskJson(`{"a":${deep.slice(0, -1)}`, [])).toBeUndefined()
})

describe('a repeated key', () => {
  const twice = '{"status":"failed","transactionId":"tx","st\\u0061tus":"completed"}'

  test('in a success makes the answer unreadable (the last value completed the record)', () => {
    expect(parseAnswerJson(twice, [], true)).toBeUndefined()
  })

  test('in a refusal, or within the result, counts as its last', () => {
    expect(parseAnswerJson('{"code":"E001","code":"E003"}', [], false)).toEqual({ code: 'E003' })
    const read = parseAnswerJson('{"status":"completed","result":{"a":1,"a":2}}', [], true)
    expect(read).toEqual({ status: 'completed', result: { a: 2 } })
  })

  test('is not seen if the objects differ', () => {
    const nested = '{"a":{"a":1},"b":[{"a":1},{"a":1}]}'
    expect(parseAnswerJson(nested, [], true)).toEqual(JSON.parse(nested))
  })
})
