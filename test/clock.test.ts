import { expect, test } from 'vitest'
import { createClock } from '../src/clock.ts'

function setup() {
  const now = { monotonicMs: 5_000, wallMs: 1_700_000_000_000 }
  const clock = createClock(
    () => now.monotonicMs,
    () => now.wallMs,
  )
  const pass = (ms: number) => {
    now.monotonicMs += ms
    now.wallMs += ms
  }
  return { now, pass, elapsedMs: clock.stopwatch() }
}

test('a stopwatch counts the time in which the machine was suspended', () => {
  const { now, pass, elapsedMs } = setup()
  pass(1_000)
  now.wallMs += 3_600_000
  expect(elapsedMs()).toBe(3_601_000)
})

test('a stopwatch goes on when a wall clock that was set forward is corrected', () => {
  const { now, pass, elapsedMs } = setup()
  now.wallMs += 3_600_000
  expect(elapsedMs()).toBe(3_600_000)
  now.wallMs -= 3_600_000
  expect(elapsedMs()).toBe(3_600_000)
  pass(1_000)
  expect(elapsedMs()).toBe(3_601_000)
})

test('a stopwatch counts a suspension after the wall clock was set back', () => {
  const { now, pass, elapsedMs } = setup()
  now.wallMs -= 3_600_000
  pass(1_000)
  expect(elapsedMs()).toBe(1_000)
  now.wallMs += 60_000
  expect(elapsedMs()).toBe(61_000)
})

test('reading a stopwatch often does not add up the rounding of the wall clock', () => {
  const { now, elapsedMs } = setup()
  const startMs = now.wallMs
  for (let n = 1; n <= 10_000; n += 1) {
    now.monotonicMs += 0.1
    now.wallMs = startMs + Math.round(n / 10) + (n % 7 === 0 ? 20 : 0)
    elapsedMs()
  }
  expect(elapsedMs()).toBeCloseTo(1_000)
})
