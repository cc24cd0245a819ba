import { expect, test } from 'vitest'
import { readRetryAfterMs } from '../../src/service/client.ts'

const nowMs = Date.parse('2026-11-21T00:00:00Z')

test.each([
  ['7', 7_000],
  [' 0 ', 0],
  ['99999999999', 99_999_999_999_000],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ['Sat, 21 Nov 2026 00:01:30 GMT', 90_000],
  ['Saturday, 21-Nov-26 00:01:30 GMT', 90_000],
  ['Fri, 20 Nov 2026 00:00:00 GMT', 0],
  ['-5', null],
  ['1e3', null],
  ['1.5', null],
  ['soon', null],
  ['', null],
  [undefined, null],
])('Retry-After: %s is %s ms', (header, expected) => {
  expect(readRetryAfterMs(header === undefined ? {} : { 'retry-after': header }, nowMs)).toBe(expected)
})

test('a date counts by the service’s clock, as its Date header has it', () => {
  const skewMs = 90_000
  const headers = {
    date: new Date(nowMs + skewMs).toUTCString(),
    'retry-after': new Date(nowMs + skewMs + 5_000).toUTCString(),
  }
  expect(readRetryAfterMs(headers, nowMs)).toBe(5_000)
})
