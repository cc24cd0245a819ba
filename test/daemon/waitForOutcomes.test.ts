import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { runOneAfterAnother } from '../../src/commands/run.ts'
import { stopAndWaitForOutcomes } from '../../src/daemon/loops.ts'
import type { LogFields } from '../../src/observe/log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const record = { submissionId: 's1', outboxId: '7' }

function setup() {
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
  const leaving = stopAndWaitForOutcomes(dispatch, { log, stopTakingWork: async () => {} })
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
  expect(await leaving).toBe(true)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toHaveLength(3)
})

test('after ten minutes a stopping daemon gives up and names each record', async () => {
  const { leaving, lines } = setup()
  await vi.advanceTimersByTimeAsync(601_000)
  expect(await leaving).toBe(false)
  expect(lines.at(-1)).toEqual({
    event:
      'record was left in doubt: the daemon stopped before its outcome was in the ledger, so another instance settles it',
    fields: record,
  })
})

test('a record that was left in doubt before the ledger got other settings makes the later stop exit with 1', async () => {
  const stopping = new AbortController()
  const settled = [false, true]
  const exitCode = await runOneAfterAnother({
    signal: stopping.signal,
    log: { info() {} },
    random: () => 0,
    async start() {
      if (settled.length === 1) stopping.abort()
      return { stop: async () => settled.shift() ?? true, otherSettings: Promise.resolve() }
    },
  })
  expect(settled).toEqual([])
  expect(exitCode).toBe(1)
})
