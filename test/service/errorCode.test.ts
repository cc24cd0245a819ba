import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findErrorCode } from '../../src/service/errorCode.ts'

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
  { body: { code: 'BAD_REQUEST', message: 'E001: Invalid customer' }, code: 'E001' },
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
  expect(findErrorCode(body, JSON.stringify(body))).toBe(code)
})

test('it is found in text that is not JSON', () => {
  expect(findErrorCode(undefined, '<h1>E003 Service unavailable</h1>')).toBe('E003')
})

test('whatever the body is, it finds one word or nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (json, text) => {
      expect(findErrorCode(json, text) ?? 'E001').toMatch(/^[\w.:/-]{1,64}$/)
    }),
  )
})
