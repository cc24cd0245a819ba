import { expect, test } from 'vitest'
import { judgeCertificates, ownCertificates } from '../../src/commands/checkCertificates.ts'
import { createAuthority } from '../support/certificates.ts'

const dayMs = 86_400_000
const nowMs = Date.parse('2026-11-22T00:00:00Z')

test.each([
  [30, 'ok', 'ends on 2026-12-22, in 30 d'],
  [13, 'warning', 'ends on 2026-12-05, in 13 d'],
  [-1, 'problem', 'ended on 2026-11-21'],
] as const)('a certificate that ends in %i days: %s', (days, mark, says) => {
  const found = judgeCertificates([{ whose: 'that of the service', endsMs: nowMs + days * dayMs }], nowMs)
  expect(found).toMatchObject({ mark, message: expect.stringContaining(`that of the service ${says}`) })
})

test('the first to end decides; where there is none, nothing is said', () => {
  const ends = [100, 3, 50].map((days) => ({ whose: `${days}`, endsMs: nowMs + days * dayMs }))
  expect(judgeCertificates(ends, nowMs)?.mark).toBe('warning')
  expect(judgeCertificates([], nowMs)).toBeNull()
})

test('ours are those of the files, each by its first end', () => {
  const authority = createAuthority('ours')
  const untilMs = Math.trunc(nowMs / 1000) * 1000
  const { cert } = authority.issue({ name: 'client', untilMs })
  expect(ownCertificates({ cert, ca: null })).toEqual([
    { whose: 'our client certificate (SERVICE_CERT_FILE)', endsMs: untilMs },
  ])
  expect(ownCertificates({ cert: null, ca: cert + authority.cert })).toMatchObject([{ endsMs: untilMs }])
})
