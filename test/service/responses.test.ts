import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAndMaskJson } from '../../src/service/readJson.ts'
import {
  findAnyErrorCode,
  findErrorMessage,
  readIdInSubmitAnswer,
  readTransactionStatus,
} from '../../src/service/responses.ts'

describe('the id of a submit answer', () => {
  test.each([
    { resource: 'data', body: '{"transactionId":"tx-1","status":"accepted","timestamp":"x"}', id: 'tx-1' },
    { resource: 'data', body: '{"transactionId":"tx-1","more":{}}', id: 'tx-1' },
    { resource: 'data', body: '{"transactionId":12345678901234567890}', id: '12345678901234567890' },
    { resource: 'orders', body: '{"orderId":"o-1","status":"pending","createdAt":"x"}', id: 'o-1' },
    { resource: 'orders', body: '{"transactionId":"tx-1"}', id: null },
    { resource: 'data', body: '{"orderId":"o-1"}', id: null },
    { resource: 'data', body: '{"transactionId":""}', id: null },
    { resource: 'data', body: '{"transactionId":".."}', id: null },
    { resource: 'data', body: '{"transactionId":"."}', id: null },
    { resource: 'data', body: '{"transactionId":"..."}', id: '...' },
    { resource: 'orders', body: '{"orderId":".."}', id: null },
    { resource: 'data', body: '{"transactionId":null}', id: null },
    { resource: 'data', body: '{"transactionId":{}}', id: null },
    { resource: 'data', body: '{"transactionId":"a\\nb"}', id: null },
    { resource: 'data', body: '{"transactionId":"a\\u0000b"}', id: null },
    { resource: 'data', body: `{"transactionId":"${'x'.repeat(256)}"}`, id: null },
    { resource: 'data', body: '[]', id: null },
    { resource: 'data', body: 'no JSON', id: null },
  ] as const)('$resource: $body gives $id', ({ resource, body, id }) => {
    expect(readIdInSubmitAnswer(resource, parseAndMaskJson(body, []))).toBe(id)
  })
})

describe('the status of a transaction', () => {
  test('has its id, its state and its result with the service’s own digits', () => {
    const json = parseAndMaskJson('{"transactionId":"tx","status":"completed","result":{"paid":1234.50,"b":[]}}', [])
    expect(readTransactionStatus('data', json)).toEqual({
      transactionId: 'tx',
      status: 'completed',
      result: '{"paid":1234.50,"b":[]}',
      errorCode: null,
    })
  })

  test('of an order has the same form, with the order’s other fields as the result', () => {
    const json = parseAndMaskJson('{"orderId":"o","status":"Completed","items":[{"price":1.10}]}', [])
    expect(readTransactionStatus('orders', json)).toEqual({
      transactionId: 'o',
      status: 'completed',
      result: '{"items":[{"price":1.10}]}',
      errorCode: null,
    })
  })

  test.each([
    ['{"status":"pending"}', { transactionId: null, status: 'pending' }],
    ['{"transactionId":null,"status":"pending","result":null}', { transactionId: null, result: null }],
    ['{"transactionId":"tx","status":"failed","errorCode":"E001"}', { status: 'failed', errorCode: 'E001' }],
    ['{"transactionId":"tx","status":"failed","errorCode":7}', { status: 'failed', errorCode: null }],
  ])('is read from %s', (body, expected) => {
    expect(readTransactionStatus('data', parseAndMaskJson(body, []))).toMatchObject(expected)
  })

  test.each(['{}', '{"status":503,"code":"E003"}', '[]', 'null', 'no JSON'])('is not in %s', (body) => {
    expect(readTransactionStatus('data', parseAndMaskJson(body, []))).toBeNull()
    expect(readTransactionStatus('orders', parseAndMaskJson(body, []))).toBeNull()
  })
})

test.each([
  [{ title: 'Invalid', detail: 'customer not found' }, 'customer not found'],
  [{ message: 'Invalid customer' }, 'Invalid customer'],
  [{ error: 'invalid_client', error_description: 'no such client' }, 'no such client'],
  [{ error: { code: 'E001', message: 'Invalid customer' } }, 'Invalid customer'],
  [{ title: 'Invalid', errors: [{ message: 'a' }, 'b', { detail: 'c' }, 7] }, 'Invalid; a; b; c'],
  [{ message: 'x'.repeat(900) }, `${'x'.repeat(499)}…`],
  [{ message: 7 }, null],
  [{}, null],
  [undefined, null],
])('the message in %j is %s', (json, message) => {
  expect(findErrorMessage(json)).toBe(message)
})

test('no JSON makes the readers throw', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('data' as const, 'orders' as const), (json, resource) => {
      readIdInSubmitAnswer(resource, json)
      readTransactionStatus(resource, json)
      findErrorMessage(json)
    }),
  )
})

test.each([
  { body: { code: 'E001' }, code: 'E001' },
  { body: { errorCode: 'E002' }, code: 'E002' },
  { body: { error_code: 'E002' }, code: 'E002' },
  { body: { error: { code: 'E003' } }, code: 'E003' },
  { body: { error: 'E003' }, code: 'E003' },
  { body: { errors: [{ field: 'x' }, { code: 'E001' }] }, code: 'E001' },
  { body: { errors: ['not a code', { errorCode: 'E001' }] }, code: 'E001' },
  { body: [{ code: 'E001' }], code: 'E001' },
  { body: { type: 'https://errors.example/E002', title: 'Duplicate', status: 409 }, code: 'E002' },
  { body: { type: 'about:blank', status: 400, code: 'E001' }, code: 'E001' },
  { body: { type: 'urn:problem:E003', title: 'Service unavailable' }, code: 'E003' },
  { body: { type: 'https://errors.example/not-found', title: 'Not found', status: 404 }, code: null },
  { body: { code: 'BAD_REQUEST', type: 'https://errors.example/E001' }, code: 'E001' },
  { body: { code: 'BAD_REQUEST', message: 'E001: Invalid customer' }, code: 'BAD_REQUEST' },
  { body: { message: 'E003: article not for sale' }, code: null },
  { body: { errors: ['E001', 'customerId is unknown'] }, code: 'E001' },
  { body: { errors: ['required', 'article E003'] }, code: null },
  { body: { code: 'BAD_REQUEST', errors: [{ code: 'E001' }] }, code: 'E001' },
  { body: { code: 'BAD_REQUEST' }, code: 'BAD_REQUEST' },
  { body: { error: 'invalid_client' }, code: 'invalid_client' },
  { body: { error: 'something went wrong' }, code: null },
  { body: { code: 400 }, code: null },
  { body: { code: 'x'.repeat(65) }, code: null },
  { body: { message: 'see ABE001 and E0012' }, code: null },
  { body: {}, code: null },
  { body: null, code: null },
])('$body has the code $code', ({ body, code }) => {
  expect(findAnyErrorCode(400, body, JSON.stringify(body))).toBe(code)
  expect(findAnyErrorCode(500, body, JSON.stringify(body))).toBe(code)
})

test('a code is found at the start of a 5xx text that is not JSON, and not within a gateway’s page', () => {
  expect(findAnyErrorCode(502, undefined, '\nE003 Service unavailable')).toBe('E003')
  expect(findAnyErrorCode(500, undefined, '<html><h1>E003 Service unavailable</h1>')).toBe('E003')
  expect(findAnyErrorCode(504, undefined, '<html>Reference: E003-7f</html>')).toBe(null)
})

test.each([
  200, 301, 400, 403, 422,
])('the text of a %i that is not JSON has no code (a 400 about "article E003-17" paused all sending)', (status) => {
  expect(findAnyErrorCode(status, undefined, 'article E003-17 is not for sale')).toBe(null)
})

test('from any body, the code is one word or null', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), fc.integer({ min: 200, max: 599 }), (json, text, status) => {
      expect(findAnyErrorCode(status, json, text) ?? 'E001').toMatch(/^[\w.:/-]{1,64}$/)
    }),
  )
})
