import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dividePermitsIntoSlots, fitSlotsToNewLimit, type SlotRow, slotsMax } from '../../src/ledger/budget.ts'

const limit = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 400, max: 1_700 }))

/** A table as it can be: slots of a limit, taken or free, and slots that a lower limit has emptied. */
const table = fc
  .tuple(limit, fc.infiniteStream(fc.integer({ min: -50, max: 100 })), fc.nat(4))
  .map(([requests, times, emptied]): SlotRow[] => {
    const permitsOfSlots = [...dividePermitsIntoSlots(requests), ...Array<number>(emptied).fill(0)]
    return permitsOfSlots.map((permits, n) => ({ id: n + 1, permits, freeInMs: Math.max(0, times.next().value ?? 0) }))
  })

const sum = (rows: readonly SlotRow[], count: (row: SlotRow) => number) =>
  rows.reduce((total, row) => total + count(row), 0)
/** Requests that still count in `inMs`. */
const owed = (rows: readonly SlotRow[], inMs: number) =>
  sum(rows, ({ permits, freeInMs }) => (freeInMs > inMs ? permits : 0))
const capacity = (rows: readonly SlotRow[]) => sum(rows, ({ permits }) => permits)
const free = (rows: readonly SlotRow[], inMs = 0) =>
  sum(rows, ({ permits, freeInMs }) => (freeInMs <= inMs ? permits : 0))

describe('fitSlotsToNewLimit', () => {
  test('the slots sum to the new limit, and are at most 500', () => {
    fc.assert(
      fc.property(table, limit, (rows, requests) => {
        const fitted = fitSlotsToNewLimit(rows, { requests, windowLengthenedByMs: 0 })
        expect(capacity(fitted)).toBe(requests)
        expect(fitted.filter(({ permits }) => permits > 0).length).toBeLessThanOrEqual(slotsMax)
        expect(fitted.map(({ id }) => id)).toEqual(fitted.map((_, n) => n + 1))
        expect(fitted.length).toBeGreaterThanOrEqual(rows.length)
      }),
    )
  })

  test('at every later moment, spent and free permits together stay within the new limit', () => {
    fc.assert(
      fc.property(table, limit, fc.integer({ min: 0, max: 100 }), (rows, requests, inMs) => {
        const fitted = fitSlotsToNewLimit(rows, { requests, windowLengthenedByMs: 0 })
        expect(free(fitted, inMs)).toBeLessThanOrEqual(Math.max(0, requests - owed(rows, inMs)))
        expect(owed(fitted, inMs)).toBeGreaterThanOrEqual(Math.min(requests, owed(rows, inMs)))
      }),
    )
  })

  test('if a slot was free, less than one slot too many is held back; if none was, none becomes free', () => {
    fc.assert(
      fc.property(table, limit, (rows, requests) => {
        const fitted = fitSlotsToNewLimit(rows, { requests, windowLengthenedByMs: 0 })
        const each = Math.ceil(requests / slotsMax)
        const isAnyFree = free(rows) > 0
        if (isAnyFree) expect(free(fitted)).toBeGreaterThan(Math.max(0, requests - owed(rows, 0)) - each)
        else expect(free(fitted)).toBe(0)
      }),
    )
  })

  test('after any sequence of limits, what was spent still counts', () => {
    fc.assert(
      fc.property(table, fc.array(limit, { minLength: 1, maxLength: 8 }), (rows, limits) => {
        const last = limits.at(-1) ?? 1
        const fitted = limits.reduce(
          (now, requests) => fitSlotsToNewLimit(now, { requests, windowLengthenedByMs: 0 }),
          rows,
        )
        expect(free(fitted)).toBeLessThanOrEqual(Math.max(0, last - owed(rows, 0)))
      }),
    )
  })

  test('a longer window frees nothing before the added time has passed, and then no more than is allowed', () => {
    fc.assert(
      fc.property(table, limit, fc.integer({ min: 1, max: 50 }), (rows, requests, windowLengthenedByMs) => {
        const fitted = fitSlotsToNewLimit(rows, { requests, windowLengthenedByMs })
        expect(free(fitted, windowLengthenedByMs - 1)).toBe(0)
        for (let inMs = 0; inMs < 100; inMs += 7)
          expect(free(fitted, inMs + windowLengthenedByMs)).toBeLessThanOrEqual(
            Math.max(0, requests - owed(rows, inMs)),
          )
      }),
    )
  })
})
