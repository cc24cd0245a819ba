import { setTimeout as after } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { summarizeBudget } from '../../src/console/now/budgetHtml.ts'
import { attentionSection, serviceTargetsSection } from '../../src/console/now/nowPage.ts'
import { createLastKnownOutboxStatusReader } from '../../src/console/now/readNow.ts'
import { shareRecentRead } from '../../src/console/parts.ts'
import type { FailureCause } from '../../src/ledger/operator/search.ts'
import type { BusySlot } from '../../src/ledger/snapshot.ts'
import type { Databases } from '../../src/operations/databases.ts'
import type { OutboxStatus } from '../../src/operations/readStatus.ts'
import { until } from '../support/until.ts'

const nowMs = 1_000_000
const slot = (given: Partial<BusySlot>): BusySlot => ({
  ...{ permits: 1, setMs: nowMs - 5_000, freeMs: nowMs + 55_000, isTaken: false, submissions: 0, polls: 0, others: 0 },
  ...given,
})
const countsOf = (...busy: BusySlot[]) => summarizeBudget({ nowMs, windowMs: 60_000, capacity: 100, busy })

test('each request counts for its purpose, and the remaining slots are free', () => {
  const { counts, free, nextFreeMs } = countsOf(
    slot({ submissions: 1 }),
    slot({ polls: 1, freeMs: nowMs + 7_000 }),
    slot({ others: 1 }),
    slot({ isTaken: true, submissions: 1 }),
    slot({}),
  )
  expect(counts).toEqual({ submissions: 1, polls: 1, others: 1, inHand: 1, heldBack: 1 })
  expect({ free, nextFreeMs }).toEqual({ free: 95, nextFreeMs: 7_000 })
})

test('the unused permits of a slot for several requests count as held back', () => {
  const { counts, free } = countsOf(slot({ permits: 12, submissions: 5, polls: 4 }))
  expect(counts).toMatchObject({ submissions: 5, polls: 4, heldBack: 3 })
  expect(free).toBe(88)
})

test('a share below the target is marked in words, and without requests there is no share', () => {
  const none = { requests: 0, failed: 0, answered: 0, slow: 0 }
  const empty = { submit: none, status: none }
  const text = serviceTargetsSection({
    lastHour: { submit: { requests: 100, failed: 2, answered: 100, slow: 0 }, status: none },
    lastDay: empty,
    last28Days: empty,
  }).toString()
  expect(text).toContain('<h2>The service, against its targets</h2>')
  expect(text).toContain('<span class="bad">below: 98 %</span>')
  expect(text).toContain('>100 %<')
  expect(text.match(/>none</g)).toHaveLength(4)
})

test('of ten causes, eight are listed and the others counted', () => {
  const cause: FailureCause = {
    ...{ cause: 'aaaaaaaa', count: 1, state: 'failed', code: null, mayHaveArrived: true, shape: 'x', types: ['data'] },
    ...{ firstMs: nowMs, lastMs: nowMs, firstOutboxId: '1' },
  }
  const text = attentionSection(
    { causes: Array(10).fill(cause), lookedAt: 1_000, isCut: true },
    1_200,
    nowMs,
  ).toString()
  expect(text).toContain('2 more causes')
  expect(text).toContain('failed, <strong class="attention">may have arrived')
  expect(text).toContain('Only the newest 1,000 records that need attention were read.')
})

test('the page says that no record needs attention only if the count is 0', () => {
  const none = { causes: [], lookedAt: 0, isCut: false }
  expect(attentionSection(none, 3, nowMs).toString()).toContain('3 records. The causes follow within 10 seconds.')
  expect(attentionSection(none, 0, nowMs).toString()).toContain('No record needs attention.')
})

test('the page does not wait for a slow outbox: it says so, and shows the answer once it comes', async () => {
  const answer = Promise.withResolvers<OutboxStatus>()
  let asked = 0
  let elapsedMs = 0
  const stopwatch = () =>
    (
      (startMs) => () =>
        elapsedMs - startMs
    )(elapsedMs)
  const clock = { nowMs: Date.now, stopwatch }
  const read = createLastKnownOutboxStatusReader({ databases: async () => ({}) as Databases, clock }, () => {
    asked += 1
    return answer.promise
  })
  expect(await read()).toEqual({ kind: 'awaited' })
  expect(await read()).toEqual({ kind: 'awaited' })
  expect(asked).toBe(1)
  const readOutbox: OutboxStatus = {
    kind: 'read',
    outbox: { waiting: 3, oldestMs: null } as never,
    rowsBeforeStart: null,
  }
  elapsedMs = 500
  answer.resolve(readOutbox)
  expect(await read()).toEqual(readOutbox)
  // The read took half a second, so the next one comes after forty times as long.
  elapsedMs = 20_400
  await read()
  expect(asked).toBe(1)
  elapsedMs = 20_600
  await read()
  expect(asked).toBe(2)
})

test('a shared read serves all callers once, and is repeated when it is old or after it failed', async () => {
  let reads = 0
  let fails = true
  const read = shareRecentRead(systemClock, 50, async () => {
    reads += 1
    await after(5)
    if (fails) throw new Error('away')
    return reads
  })
  const failed = await Promise.allSettled(Array.from({ length: 10 }, () => read()))
  expect(failed.every(({ status }) => status === 'rejected')).toBe(true)
  expect(reads).toBe(1)
  fails = false
  expect(await Promise.all(Array.from({ length: 10 }, () => read()))).toEqual(Array(10).fill(2))
  await until(read, (n) => n === 3)
})
