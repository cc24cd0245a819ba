import fc from 'fast-check'
import { expect, test } from 'vitest'
import { judgeRowsBehindCursor, type RowsBehindCursorSample } from '../../src/outbox/cursorScan.ts'

const sample = (some: Partial<RowsBehindCursorSample>): RowsBehindCursorSample => ({
  rows: 20,
  uncaptured: 0,
  conflicting: 0,
  edited: 0,
  areStampsTimes: false,
  hasSequenceChanged: false,
  ...some,
})

test.each([
  [{ hasSequenceChanged: true }, 'same'],
  [{ hasSequenceChanged: true, edited: 10 }, 'same'],
  [{ hasSequenceChanged: true, edited: 11 }, 'restarted'],
  [{ hasSequenceChanged: true, uncaptured: 9, conflicting: 2 }, 'restarted'],
  [{ hasSequenceChanged: true, rows: 0 }, 'same'],
  [{ areStampsTimes: true, conflicting: 20 }, 'restarted'],
  [{ areStampsTimes: true, conflicting: 19 }, 'same'],
  [{ conflicting: 20 }, 'differs'],
  [{ edited: 20 }, 'differs'],
  [{ uncaptured: 20 }, 'same'],
] as const)('a sample with %j is judged as %s', (some, verdict) => {
  expect(judgeRowsBehindCursor(sample(some))).toBe(verdict)
})

test('edited rows alone are never judged as restarted', () => {
  const edits = fc.record({ rows: fc.constant(20), conflicting: fc.nat(10), edited: fc.nat(10) })
  fc.assert(fc.property(edits, (some) => judgeRowsBehindCursor(sample(some)) !== 'restarted'))
})
