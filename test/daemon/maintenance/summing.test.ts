import { expect, test } from 'vitest'
import { createSumming } from '../../../src/daemon/maintenance/summing.ts'

function setup() {
  const state = { nowMs: 0, minutes: { written: 1, hasMore: false }, hours: { written: 0, hasMore: false } }
  const calls: string[] = []
  const summing = createSumming({
    elapsedMs: () => state.nowMs,
    async writePeriods(span, outboxWaiting) {
      calls.push(`${span} ${outboxWaiting}`)
      return span === 'minute' ? state.minutes : state.hours
    },
    writeRequestHours: async () => void calls.push('requests'),
    prunePeriods: async () => void calls.push('prune'),
  })
  return { summing, state, calls }
}

test('a minute is written with the rows that were seen to wait, and with none where nobody has seen them lately', async () => {
  const { summing, state, calls } = setup()
  await summing.runOnce()
  summing.sawWaiting(7)
  await summing.runOnce()
  state.nowMs = 60_000
  await summing.runOnce()
  expect(calls.filter((call) => call.startsWith('minute'))).toEqual(['minute null', 'minute 7', 'minute null'])
})

test('whoever wrote no minute leaves the hours to the one who did', async () => {
  const { summing, state, calls } = setup()
  state.minutes = { written: 0, hasMore: false }
  expect(await summing.runOnce()).toBe(false)
  expect(calls).toEqual(['minute null'])
})

test('hours come when their minutes are there; with an hour its requests are added up, and what is old goes', async () => {
  const { summing, state, calls } = setup()
  state.minutes = { written: 60, hasMore: true }
  state.hours = { written: 2, hasMore: true }
  expect(await summing.runOnce()).toBe(true)
  expect(calls).toEqual(['minute null'])
  state.minutes = { written: 5, hasMore: false }
  expect(await summing.runOnce()).toBe(true)
  expect(calls.slice(1)).toEqual(['minute null', 'hour null', 'requests', 'prune'])
  state.hours = { written: 0, hasMore: false }
  expect(await summing.runOnce()).toBe(false)
  expect(calls.slice(5)).toEqual(['minute null', 'hour null'])
})
