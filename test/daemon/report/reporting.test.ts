import { afterEach, expect, test, vi } from 'vitest'
import { createReportRounds } from '../../../src/daemon/report/report.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Report rounds with `due` reports due, and fake timers. */
function setup(due = 0) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const wake = vi.fn()
  const reporting = createReportRounds({
    stopwatch: () => () => 0,
    readDue: async () => ({
      fresh: Array.from({ length: due }, () => ({ submissionId: 'a', failures: 0 })),
      again: [],
    }),
    writeBack: async () => ({ kind: 'done', rows: [] }),
    writeResults: async () => {},
    wake,
  })
  return { ...reporting, wake }
}

test('a full round is followed at once, another after 2 s', async () => {
  expect(await setup(500).runOnce()).toBe(0)
  expect(await setup(3).runOnce()).toBe(2_000)
})

test('a written step starts a round after 50 ms, together with the steps that follow', () => {
  const { onWritten, wake } = setup()
  onWritten(['step'])
  vi.advanceTimersByTime(49)
  onWritten(['another'])
  expect(wake).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(wake).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1_000)
  expect(wake).toHaveBeenCalledTimes(1)
  onWritten(['a third'])
  vi.advanceTimersByTime(50)
  expect(wake).toHaveBeenCalledTimes(2)
})

test('a write without a step starts no round', () => {
  const { onWritten, wake } = setup()
  onWritten([])
  vi.advanceTimersByTime(1_000)
  expect(wake).not.toHaveBeenCalled()
})
