import fc from 'fast-check'
import { expect, test } from 'vitest'
import { firstBatchRows, nextBatchRows } from '../../src/ledger/retention.ts'

test('a batch that was given up is a quarter of it the next time, and one row at the least', () => {
  expect([nextBatchRows(50, null), nextBatchRows(3, null), nextBatchRows(1, null)]).toEqual([12, 1, 1])
})

test('the size comes to what takes 30 ms, whatever a row costs', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.02, max: 20, noNaN: true }), (rowMs) => {
      let rows = firstBatchRows
      for (let n = 0; n < 10; n++) rows = nextBatchRows(rows, rows * rowMs)
      expect(rows === 1 || rows * rowMs <= 30).toBe(true)
      expect(rows * rowMs).toBeGreaterThan(Math.min(15, rowMs * 0.9))
    }),
  )
})
