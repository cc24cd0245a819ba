import { expect, test } from 'vitest'
import { createSlotPool, createTokenRequestBudget } from '../../../src/daemon/dispatch/slotPool.ts'

/** A budget with `free` slots under the limit `capacity`. */
function setup(capacity: number, free = 100) {
  const state = { free, nowMs: 0 }
  const taken: number[] = []
  const returned: number[] = []
  const slotPool = createSlotPool(60_000)
  const slot = createTokenRequestBudget<string>({
    slotPool,
    capacity,
    stopwatch() {
      const startMs = state.nowMs
      return () => state.nowMs - startMs
    },
    async takeSlots(permits) {
      taken.push(permits)
      const count = Math.min(permits, state.free)
      state.free -= count
      return Array.from({ length: count }, (_, id) => ({ id, lease: '1', permits: 1 }))
    },
    onReturnable: () => returned.push(slotPool.takeReturnable().length),
  })
  return { ...slot, state, taken, returned }
}

const token = async (mayLeave: () => boolean) => (mayLeave() ? 'token' : null)

test('a token costs one slot, which is given back with the answer', async () => {
  const { spend, taken, returned } = setup(100)
  expect(await spend(token, 'missing')).toBe('token')
  expect([taken, returned]).toEqual([[1], [0, 1]])
})

test('under a small limit a token is fetched only if another slot is free to use it, which is given back at once', async () => {
  const { spend, taken, returned } = setup(9)
  expect(await spend(token, 'missing')).toBe('token')
  expect([taken, returned]).toEqual([[2], [1, 1]])
})

test('under a small limit with one free slot, the slot is given back and no token is fetched', async () => {
  const { spend, returned } = setup(9, 1)
  expect(await spend(() => Promise.reject(new Error('it left')), 'missing')).toBe('no-slot')
  expect(returned).toEqual([1])
})

test('with a limit of one request, a token is not renewed before it expires, to save the request', async () => {
  const { spend, taken, isOneAtATime } = setup(1)
  expect(isOneAtATime()).toBe(true)
  expect(await spend(token, 'renewal')).toBe('no-slot')
  expect(taken).toEqual([])
  expect(await spend(token, 'missing')).toBe('token')
  expect(taken).toEqual([1])
})

test('the limit in force for all instances counts, not the configured one', async () => {
  const { spend, updateCapacity, taken, isOneAtATime } = setup(100)
  updateCapacity(1)
  expect(isOneAtATime()).toBe(true)
  await spend(token, 'missing')
  expect(taken).toEqual([1])
})

test('a slot that expired before the request could leave brings no token', async () => {
  const { spend, state } = setup(100)
  const late = async (mayLeave: () => boolean) => {
    state.nowMs += 60_000
    return token(mayLeave)
  }
  expect(await spend(late, 'missing')).toBe('no-slot')
})

test('a token request that fails gives its slot back', async () => {
  const { spend, returned } = setup(100)
  await expect(spend(() => Promise.reject(new Error('mistake')), 'missing')).rejects.toThrow('mistake')
  expect(returned).toEqual([0, 1])
})
