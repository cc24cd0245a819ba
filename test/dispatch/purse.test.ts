import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPurse, type Permit, slotLeaseMs } from '../../src/dispatch/purse.ts'

const windowMs = 60_000

/** A purse whose time is set by the test. */
function setup() {
  let nowMs = 0
  const stopwatch = () => {
    const startMs = nowMs
    return () => nowMs - startMs
  }
  let slots = 0
  const purse = createPurse(windowMs)
  return {
    purse,
    pass: (ms: number) => {
      nowMs += ms
    },
    take(...permits: number[]) {
      const taken = permits.map((each) => ({ id: ++slots, lease: '1', permits: each }))
      purse.add(taken, stopwatch())
    },
  }
}

test('a slot for one request is given back with its answer, used', () => {
  const { purse, take } = setup()
  take(1)
  const permit = purse.draw('submission')
  expect(purse.available()).toBe(0)
  expect(purse.hasSpent()).toBe(false)
  permit.done()
  expect(purse.hasSpent()).toBe(true)
  expect(purse.takeSpent()).toEqual([{ id: 1, lease: '1', permits: 1, used: true, submissions: 1 }])
  expect(purse.takeSpent()).toEqual([])
})

test('a slot that nobody used goes back unused', () => {
  const { purse, take } = setup()
  take(1)
  expect(purse.takeSpent()).toEqual([{ id: 1, lease: '1', permits: 1, used: false, submissions: 0 }])
})

test('a slot for several requests is kept for a moment to be used up, and goes back when all are answered', () => {
  const { purse, take, pass } = setup()
  take(3)
  purse.draw('poll').done()
  expect(purse.available()).toBe(2)
  expect(purse.takeSpent()).toEqual([])
  const last = [purse.draw('submission'), purse.draw('submission')] as [Permit, Permit]
  last[0].done()
  expect(purse.takeSpent()).toEqual([])
  last[1].done()
  expect(purse.takeSpent()).toEqual([{ id: 1, lease: '1', permits: 3, used: true, submissions: 2 }])
  pass(windowMs)
})

test('a slot that was kept too long goes back, used as it is, and gives no more', () => {
  const { purse, take, pass } = setup()
  take(3)
  purse.draw('poll').done()
  pass(1_001)
  expect(purse.available()).toBe(0)
  expect(purse.takeSpent()).toMatchObject([{ used: true }])
})

test('a permit is good for as long as its slot’s lease reckons with, and not after the process was stopped', () => {
  const { purse, take, pass } = setup()
  take(1)
  const permit = purse.draw('submission')
  pass(5_999)
  expect(permit.isGood()).toBe(true)
  pass(1)
  expect(permit.isGood()).toBe(false)
})

test('without a slot there is no good permit', () => {
  const { purse } = setup()
  const permit = purse.draw('poll')
  expect(permit.isGood()).toBe(false)
  permit.done()
  expect(purse.takeSpent()).toEqual([])
})

test('a slot that ran out between counting and drawing still serves while the lease allows it', () => {
  const { purse, take, pass } = setup()
  take(1)
  pass(2_000)
  expect(purse.available()).toBe(0)
  expect(purse.draw('poll').isGood()).toBe(true)
})

test('the lease covers the last moment at which a permit is good, the whole request, and one window', () => {
  expect(slotLeaseMs(windowMs, 30_000)).toBe(1_000 + 5_000 + 30_000 + 60_000)
})

describe('whatever happens', () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('take' as const),
      permits: fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('draw' as const), times: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant('answer' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 4_000 }) }),
    fc.record({ kind: fc.constant('give back' as const) }),
  )

  test('no more permits are drawn than slots were taken, each slot goes back once, and only when all is answered', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { purse, take, pass } = setup()
        let [taken, good, returned] = [0, 0, 0]
        const unanswered: Permit[] = []
        const ids: number[] = []
        const collect = () => {
          for (const slot of purse.takeSpent()) {
            ids.push(slot.id)
            returned += slot.permits
          }
        }
        for (const each of steps) {
          if (each.kind === 'take') {
            take(...each.permits)
            taken += each.permits.reduce((sum, permits) => sum + permits, 0)
          } else if (each.kind === 'draw') {
            for (let i = 0; i < each.times; i++) {
              const before = purse.available()
              const permit = purse.draw('poll')
              if (before > 0) expect(permit.isGood()).toBe(true)
              if (permit.isGood()) good += 1
              unanswered.push(permit)
            }
          } else if (each.kind === 'answer') {
            for (const permit of unanswered.splice(each.which % (unanswered.length + 1), 1)) permit.done()
          } else if (each.kind === 'pass') pass(each.ms)
          else collect()
          expect(good).toBeLessThanOrEqual(taken)
          expect(purse.available()).toBeLessThanOrEqual(taken - good)
        }
        for (const permit of unanswered) permit.done()
        pass(windowMs)
        collect()
        expect(returned).toBe(taken)
        expect(new Set(ids).size).toBe(ids.length)
      }),
    )
  })

  test('what goes back as unused was never drawn from', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 8 }), fc.nat(20), (permits, draws) => {
        const { purse, take } = setup()
        take(...permits)
        const total = permits.reduce((sum, each) => sum + each, 0)
        const drawn = Math.min(draws, total)
        for (let i = 0; i < drawn; i++) purse.draw('submission').done()
        const spent = purse.takeSpent()
        expect(spent.reduce((sum, { submissions }) => sum + submissions, 0)).toBeLessThanOrEqual(drawn)
        for (const slot of spent) expect(slot.used).toBe(slot.submissions > 0)
      }),
    )
  })
})
