import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSlotPool, type Permit } from '../../../src/daemon/dispatch/slotPool.ts'
import { trialLeaseMs } from '../../../src/slotDurations.ts'

const windowMs = 60_000

/** A slot pool whose clock the test sets. */
function setup() {
  let nowMs = 0
  const stopwatch = () => {
    const startMs = nowMs
    return () => nowMs - startMs
  }
  let slots = 0
  const slotPool = createSlotPool(windowMs)
  return {
    slotPool,
    pass: (ms: number) => {
      nowMs += ms
    },
    take(...permits: number[]) {
      const taken = permits.map((each) => ({ id: ++slots, lease: '1', permits: each }))
      slotPool.add(taken, stopwatch())
    },
  }
}

test('a slot for one request is given back with its answer, used', () => {
  const { slotPool, take } = setup()
  take(1)
  const permit = slotPool.acquire('submissions')
  expect(slotPool.available()).toBe(0)
  expect(slotPool.hasReturnable()).toBe(false)
  permit.endRequest()
  expect(slotPool.hasReturnable()).toBe(true)
  expect(slotPool.takeReturnable()).toEqual([
    { id: 1, lease: '1', permits: 1, used: true, submissions: 1, polls: 0, others: 0 },
  ])
  expect(slotPool.takeReturnable()).toEqual([])
})

test('a slot that was not used is given back unused', () => {
  const { slotPool, take } = setup()
  take(1)
  expect(slotPool.takeReturnable()).toEqual([
    { id: 1, lease: '1', permits: 1, used: false, submissions: 0, polls: 0, others: 0 },
  ])
})

test('a slot for several requests is kept for a second, and given back when all its requests are answered', () => {
  const { slotPool, take, pass } = setup()
  take(3)
  slotPool.acquire('polls').endRequest()
  expect(slotPool.available()).toBe(2)
  expect(slotPool.takeReturnable()).toEqual([])
  const last = [slotPool.acquire('submissions'), slotPool.acquire('submissions')] as [Permit, Permit]
  last[0].endRequest()
  expect(slotPool.takeReturnable()).toEqual([])
  last[1].endRequest()
  expect(slotPool.takeReturnable()).toEqual([
    { id: 1, lease: '1', permits: 3, used: true, submissions: 2, polls: 1, others: 0 },
  ])
  pass(windowMs)
})

test('a slot that was kept for more than a second is not available any more, and is given back as used', () => {
  const { slotPool, take, pass } = setup()
  take(3)
  slotPool.acquire('polls').endRequest()
  pass(1_001)
  expect(slotPool.available()).toBe(0)
  expect(slotPool.takeReturnable()).toMatchObject([{ used: true }])
})

test('a permit expires before its slot’s lease, so that a suspended process does not send', () => {
  const { slotPool, take, pass } = setup()
  take(1)
  const permit = slotPool.acquire('submissions')
  pass(5_999)
  expect(permit.isValid()).toBe(true)
  pass(1)
  expect(permit.isValid()).toBe(false)
})

test('without a slot a permit is never valid', () => {
  const { slotPool } = setup()
  const permit = slotPool.acquire('polls')
  expect(permit.isValid()).toBe(false)
  permit.endRequest()
  expect(slotPool.takeReturnable()).toEqual([])
})

test('a slot that is too old to count as available still gives a valid permit within its lease', () => {
  const { slotPool, take, pass } = setup()
  take(1)
  pass(2_000)
  expect(slotPool.available()).toBe(0)
  expect(slotPool.acquire('polls').isValid()).toBe(true)
})

test('the lease of a trial covers its latest start and the whole request', () => {
  expect(trialLeaseMs(windowMs, 30_000)).toBe(1_000 + 5_000 + 30_000 + 5_000)
})

test('the lease of a trial is about a minute, however long the window (26 h with a window of a day)', () => {
  expect(trialLeaseMs(86_400_000, 30_000)).toBe(65_000)
})

describe('whatever steps follow each other,', () => {
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

  test('permits never exceed the slots taken, and each slot is given back once, after all its answers', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { slotPool, take, pass } = setup()
        let [taken, good, returned] = [0, 0, 0]
        const unanswered: Permit[] = []
        const ids: number[] = []
        const collect = () => {
          for (const slot of slotPool.takeReturnable()) {
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
              const before = slotPool.available()
              const permit = slotPool.acquire('polls')
              if (before > 0) expect(permit.isValid()).toBe(true)
              if (permit.isValid()) good += 1
              unanswered.push(permit)
            }
          } else if (each.kind === 'answer') {
            for (const permit of unanswered.splice(each.which % (unanswered.length + 1), 1)) permit.endRequest()
          } else if (each.kind === 'pass') pass(each.ms)
          else collect()
          expect(good).toBeLessThanOrEqual(taken)
          expect(slotPool.available()).toBeLessThanOrEqual(taken - good)
        }
        for (const permit of unanswered) permit.endRequest()
        pass(windowMs)
        collect()
        expect(returned).toBe(taken)
        expect(new Set(ids).size).toBe(ids.length)
      }),
    )
  })

  test('a slot that is given back as unused gave no permit', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 8 }), fc.nat(20), (permits, draws) => {
        const { slotPool, take } = setup()
        take(...permits)
        const total = permits.reduce((sum, each) => sum + each, 0)
        const drawn = Math.min(draws, total)
        for (let i = 0; i < drawn; i++) slotPool.acquire('submissions').endRequest()
        const spent = slotPool.takeReturnable()
        expect(spent.reduce((sum, { submissions }) => sum + submissions, 0)).toBeLessThanOrEqual(drawn)
        for (const slot of spent) expect(slot.used).toBe(slot.submissions > 0)
      }),
    )
  })
})
