import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findAnyErrorCode } from '../../src/service/responses.ts'

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
