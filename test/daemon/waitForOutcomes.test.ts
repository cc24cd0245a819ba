import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { stopAndWaitForOutcomes } from '../../src/daemon/loops.ts'
import type { LogFields } from '../../src/observe/log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const record = { submissionId: 's1', outboxId: '7' }

function setup({ patienceMs = Number.POSITIVE_INFINITY } = {}) {
  const lines: { event: string; fields: LogFields | undefined }[] = []
  const say = (event: string, fields?: LogFields) => void lines.push({ event, fields })
  const hand = { claims: 2 }
  let drained = () => {}
  const dispatch = {
    drained: () =>
      new Promise<void>((resolve) => {
        drained = resolve
      }),
    lostClaims: () =>
      Array.from({ length: hand.claims }, () => ({ id: 'claim', submissions: [], isTrial: false, sinceMs: 0 })),
    unsettled: () => [record],
    async recoverClaims() {
      if (hand.claims > 0) throw new Error('the database is away')
    },
  }
  const log = { info: say, warn: say, error: say }
  const leaving = stopAndWaitForOutcomes(dispatch, { log, stopTakingWork: async () => {}, patienceMs })
  return { leaving, lines, hand, drain: () => drained() }
}

test('a stopping daemon logs every 10 s which records it waits for, until all outcomes are written', async () => {
  const { leaving, lines, hand, drain } = setup()
  await vi.advanceTimersByTimeAsync(25_000)
  expect(lines).toHaveLength(2)
  expect(lines[0]?.event).toMatch(/^stopping takes long: .*answers.* or .*claims/)
  expect(lines[0]?.fields).toEqual({ lastedMs: 10_000, count: 1, records: [record] })
  hand.claims = 0
  await vi.advanceTimersByTimeAsync(10_000)
  drain()
  await leaving
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toHaveLength(3)
})

test('a daemon that nobody asked to stop gives up after its patience, and names the records', async () => {
  const { leaving, lines } = setup({ patienceMs: 600_000 })
  const given = expect(leaving).rejects.toThrow('outcomes of 1 records were not written in 10 minutes')
  await vi.advanceTimersByTimeAsync(600_000)
  await given
  expect(lines).toHaveLength(60)
  expect(lines.at(-1)).toEqual({
    event: 'outcomes are still missing: the daemon ends, and the next one settles these records',
    fields: { lastedMs: 600_000, count: 1, records: [record] },
  })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toHaveLength(60)
})
