import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type CursorSample, judgeIfNumbersRestarted } from '../../src/outbox/cursorScan.ts'

const sample = (some: Partial<CursorSample>): CursorSample => ({
  rows: 20,
  unknown: 0,
  another: 0,
  edited: 0,
  byTime: false,
  sequenceChanged: false,
  ...some,
})

test.each([
  [{ sequenceChanged: true }, 'same'],
  [{ sequenceChanged: true, edited: 10 }, 'same'],
  [{ sequenceChanged: true, edited: 11 }, 'restarted'],
  [{ sequenceChanged: true, unknown: 9, another: 2 }, 'restarted'],
  [{ sequenceChanged: true, rows: 0 }, 'same'],
  [{ byTime: true, another: 20 }, 'restarted'],
  [{ byTime: true, another: 19 }, 'same'],
  [{ another: 20 }, 'differs'],
  [{ edited: 20 }, 'differs'],
  [{ unknown: 20 }, 'same'],
] as const)('%j: %s', (some, verdict) => {
  expect(judgeIfNumbersRestarted(sample(some))).toBe(verdict)
})

test('edits alone stop nothing, however many', () => {
  const edits = fc.record({ rows: fc.constant(20), another: fc.nat(10), edited: fc.nat(10) })
  fc.assert(fc.property(edits, (some) => judgeIfNumbersRestarted(sample(some)) !== 'restarted'))
})
