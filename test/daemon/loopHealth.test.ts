import { expect, test } from 'vitest'
import { LoopHealth } from '../../src/daemon/loop.ts'
import { readinessLoops } from '../../src/daemon/loops.ts'

function setup() {
  const state = { nowMs: 1_000_000, monotonicMs: 500 }
  const health = new LoopHealth({ nowMs: () => state.nowMs, monotonicMs: () => state.monotonicMs })
  health.started('capture')
  const advance = (ms: number) => {
    state.nowMs += ms
    state.monotonicMs += ms
  }
  return { health, state, advance, failing: () => health.failing().map(({ loop }) => loop) }
}
const error = new Error('no')

test('a loop that failed 10 s ago and has not succeeded since is failing', () => {
  const { health, advance, failing } = setup()
  health.failed('capture', error)
  advance(9_999)
  expect(failing()).toEqual([])
  advance(1)
  expect(health.failing()).toEqual([{ loop: 'capture', error }])
  health.succeeded('capture')
  expect(failing()).toEqual([])
})

test('a loop is ready once it has succeeded, and for 30 s after that', () => {
  const { health, advance } = setup()
  expect(health.ready(['capture']).reasons).toEqual(['the loop capture has not succeeded since the start'])
  health.succeeded('capture')
  expect(health.ready(['capture']).reasons).toEqual([])
  health.failed('capture', error)
  advance(30_001)
  expect(health.ready(['capture']).reasons).toHaveLength(1)
  expect(health.ready([]).reasons).toEqual([])
})

test.each(readinessLoops)('the instance is not ready if only the loop %s has not succeeded', (missing) => {
  const { health, advance } = setup()
  for (const loop of readinessLoops) health.succeeded(loop)
  expect(health.ready(readinessLoops).reasons).toEqual([])
  advance(30_001)
  for (const loop of readinessLoops) if (loop !== missing) health.succeeded(loop)
  expect(health.ready(readinessLoops).reasons).toEqual([
    expect.stringContaining(`the loop ${missing} has not succeeded since 1970-`),
  ])
})

test('a loop whose round lasts longer than two minutes is stuck, and a failing loop is alive', () => {
  const { health, advance, failing } = setup()
  expect(failing()).toEqual([])
  advance(120_001)
  expect(failing()).toEqual(['capture'])
  expect(health.live().reasons).toEqual([expect.stringMatching(/^the loop capture has been stuck since \d{4}-/)])
  health.failed('capture', error)
  expect(health.live().reasons).toEqual([])
})

test('a wall clock that is set forward makes no loop stuck, and one that is set back hides none', () => {
  const { health, state } = setup()
  health.succeeded('capture')
  state.nowMs += 3_600_000
  expect(health.live().reasons).toEqual([])
  expect(health.ready(['capture']).reasons).toEqual([])
  state.nowMs -= 7_200_000
  state.monotonicMs += 30_001
  expect(health.ready(['capture']).reasons).toHaveLength(1)
  state.monotonicMs += 90_000
  expect(health.live().reasons).toHaveLength(1)
})
