import { expect, test } from 'vitest'
import { findCodelessRefusalFingerprint } from '../../src/service/responses.ts'
import { noAnswer, response } from '../support/answers.ts'

test('the same refusal has the same fingerprint, whatever the id and the time of the request', () => {
  const at = (id: string, time: string) => response(400, { title: 'Bad Request', traceId: id, time })
  const one = findCodelessRefusalFingerprint(at('0b5e8b7e-7b1e-4b57-9a55-1f3c2f8a0001', '2026-11-21T10:00:00.123Z'))
  expect(one).toMatch(/^[\w-]{22}$/)
  expect(findCodelessRefusalFingerprint(at('8f14e45fceea167a5a36dedd4bea2543', '1763719200123'))).not.toBe(null)
  expect(findCodelessRefusalFingerprint(at('0b5e8b7e-7b1e-4b57-9a55-1f3c2f8a0002', '2026-11-21T10:00:07Z'))).toBe(one)
})

test('a different status or different words give a different fingerprint', () => {
  const html = '<h1>400 The SSL certificate error</h1>'
  expect(findCodelessRefusalFingerprint(response(400, html))).not.toBe(
    findCodelessRefusalFingerprint(response(422, html)),
  )
  expect(findCodelessRefusalFingerprint(response(400, html))).not.toBe(
    findCodelessRefusalFingerprint(response(400, '<h1>400 Bad Request</h1>')),
  )
  expect(findCodelessRefusalFingerprint(response(400, 'customer 17'))).not.toBe(
    findCodelessRefusalFingerprint(response(400, 'customer 18')),
  )
})

test.each([
  response(400, { code: 'E001' }),
  response(409, { code: 'E002' }),
  response(200, { transactionId: 'tx' }),
  response(500),
  noAnswer({ sent: true, cause: 'timeout' }),
])('a refusal with a code, and an answer that is no refusal, have no fingerprint: %j', (answer) => {
  expect(findCodelessRefusalFingerprint(answer)).toBe(null)
})
