import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRepeatedLineLog } from '../../src/observe/repeats.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function setup() {
  const repeats = createRepeatedLineLog()
  const written: string[] = []
  const tell = (line: string) => repeats.tell(line, (counted) => written.push(`${line} ${counted?.times ?? 0}`))
  return { ...repeats, tell, written }
}

test('a line is written at once, and its repetitions once a minute with their number', () => {
  const { tell, written } = setup()
  for (let i = 0; i < 5; i++) tell('a')
  expect(written).toEqual(['a 0'])
  vi.advanceTimersByTime(60_000)
  expect(written).toEqual(['a 0', 'a 4'])
  tell('a')
  tell('a')
  vi.advanceTimersByTime(60_000)
  expect(written).toEqual(['a 0', 'a 4', 'a 2'])
})

test('repetitions are written with the time of the last one', () => {
  const { tell } = createRepeatedLineLog()
  const write = vi.fn()
  const firstMs = Date.now()
  tell('a', write)
  vi.advanceTimersByTime(20_000)
  tell('a', write)
  vi.advanceTimersByTime(40_000)
  expect(write.mock.calls).toEqual([[], [expect.objectContaining({ times: 1, lastMs: firstMs + 20_000 })]])
})

test('after a minute without repetitions, the next one is written at once', () => {
  const { tell, written } = setup()
  tell('a')
  vi.advanceTimersByTime(60_000)
  tell('a')
  expect(written).toEqual(['a 0', 'a 0'])
})

test('a clock that was set back does not silence a line', () => {
  const { tell, written } = setup()
  tell('a')
  vi.setSystemTime(Date.now() - 3_600_000)
  vi.advanceTimersByTime(60_000)
  tell('a')
  expect(written).toEqual(['a 0', 'a 0'])
})

test('different lines are not held back', () => {
  const { tell, written } = setup()
  tell('a')
  tell('b')
  tell('a')
  expect(written).toEqual(['a 0', 'b 0'])
})

test('repetitions are written when the process ends', () => {
  const { tell, flush, written } = setup()
  tell('a')
  tell('a')
  tell('b')
  flush()
  expect(written).toEqual(['a 0', 'b 0', 'a 1'])
  vi.advanceTimersByTime(60_000)
  expect(written).toHaveLength(3)
})

test('more different lines than are remembered are all written', () => {
  const { tell, written } = setup()
  for (let i = 0; i < 1_001; i++) tell(`line ${i}`)
  tell('line 1000')
  expect(written).toHaveLength(1_002)
})
