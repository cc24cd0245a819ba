import { setTimeout as after } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { budgetWindow, marksToSvgPaths } from '../../src/console/now/budgetHtml.ts'
import { downsample, plotPath, toPlottedHistory } from '../../src/console/now/historyHtml.ts'
import { attentionSection, targetsSection } from '../../src/console/now/nowHtml.ts'
import { createOutboxReader, rereadOnChange, shareRead } from '../../src/console/now/sharedReads.ts'
import type { BusySlot } from '../../src/ledger/operator/readActivity.ts'
import type { Cause } from '../../src/ledger/operator/search.ts'
import type { Period } from '../../src/ledger/periods.ts'
import type { Databases } from '../../src/operations/databases.ts'
import type { OutboxHalf } from '../../src/operations/readStatus.ts'
import { until } from '../support/until.ts'

const nowMs = 1_000_000
const slot = (given: Partial<BusySlot>): BusySlot => ({
  ...{ permits: 1, setMs: nowMs - 5_000, freeMs: nowMs + 55_000, isTaken: false, submissions: 0, polls: 0, others: 0 },
  ...given,
})
const windowOf = (...busy: BusySlot[]) => budgetWindow({ nowMs, windowMs: 60_000, capacity: 100, busy })

test('each request is a mark, of what it was made for; the rest is free', () => {
  const { counts, free, marks, nextFreeMs } = windowOf(
    slot({ submissions: 1 }),
    slot({ polls: 1, freeMs: nowMs + 7_000 }),
    slot({ others: 1 }),
    slot({ isTaken: true, submissions: 1 }),
    slot({}),
  )
  expect(counts).toEqual({ submissions: 1, polls: 1, others: 1, inHand: 1, heldBack: 1 })
  expect({ free, nextFreeMs }).toEqual({ free: 95, nextFreeMs: 7_000 })
  expect(marks[0]).toEqual({ kind: 'submissions', requests: 1, ageMs: 5_000 })
})

test('a slot for several requests has a mark for each kind; what it was not used for is held back', () => {
  expect(
    windowOf(slot({ permits: 12, submissions: 5, polls: 4 })).marks.map(({ kind, requests }) => [kind, requests]),
  ).toEqual([
    ['submissions', 5],
    ['polls', 4],
    ['heldBack', 3],
  ])
})

test('what an older version left noted of a former use never makes more requests than a slot stands for', () => {
  expect(windowOf(slot({ submissions: 1, polls: 1, others: 1 })).counts).toMatchObject({
    submissions: 1,
    polls: 0,
    others: 0,
  })
})

test('the lease of a dead instance is longer than the window: its mark stands at the window’s beginning', () => {
  expect(windowOf(slot({ isTaken: true, setMs: nowMs - 80_000 })).marks).toEqual([
    { kind: 'inHand', requests: 1, ageMs: 60_000 },
  ])
})

test('marks of one second are stacked, and a full second fits', () => {
  const boxes = (path: string) =>
    [...path.matchAll(/M(\d+) ([\d.]+)h8v([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)])
  const mark = { kind: 'polls', requests: 1, ageMs: 0 } as const
  const { polls } = marksToSvgPaths({
    windowMs: 60_000,
    marks: [mark, { ...mark, ageMs: 59_900 }, { ...mark, ageMs: 60_000 }],
  })
  expect(boxes(polls).map(([x]) => x)).toEqual([591, 1, 1])
  const full = boxes(marksToSvgPaths({ windowMs: 60_000, marks: Array.from({ length: 500 }, () => mark) }).polls)
  expect(full).toHaveLength(500)
  expect(Math.min(...full.map(([, y = 0]) => y))).toBeGreaterThanOrEqual(0)
})

const period = (beganMs: number, given: Partial<Period> = {}): Period => ({
  ...{ beganMs, completed: 0, failed: 0, rejected: 0, uncertain: 0, discarded: 0 },
  ...{ waitP50Ms: null, waitP95Ms: null, waiting: null },
  ...given,
})

test('an hour of records is told by the minute; what a person discarded is not among them', () => {
  const { plots } = toPlottedHistory('week', [period(0, { completed: 120, failed: 60, discarded: 600 })])
  expect(plots[0]?.series.map(({ values }) => values)).toEqual([[2], [1]])
  expect(plots[0]?.said).toBe('180 in the last week, 2 completed a minute at most')
})

test('a plot says in words what is to be seen, also where nothing is known', () => {
  const { plots } = toPlottedHistory('hour', [
    period(0, { waitP50Ms: 20_000, waitP95Ms: 90_000, waiting: 7 }),
    period(60_000),
  ])
  expect(plots.map(({ said }) => said).slice(1)).toEqual([
    'half within 20 s at worst, 95 % within 1 min 30 s at worst',
    'unknown now, 7 at most',
  ])
})

test('a line is interrupted where nothing is known', () => {
  expect(plotPath([1, 1, null, 1], [0, 1, 2, 3], 1)).toBe('M0 4h0.1L200 4M600 4h0.1')
  expect(plotPath([0], [0], 0)).toBe('M0 120h0.1')
})

test('of a day of minutes the picture keeps every peak, and no more points than can be seen', () => {
  const values = Array.from({ length: 1_440 }, (_, i) => (i === 777 ? 99 : i < 10 ? null : 1))
  const thinned = downsample(values)
  expect(thinned).toHaveLength(288)
  expect(thinned.filter((value) => value === 99)).toHaveLength(1)
  expect(thinned.slice(0, 3)).toEqual([null, null, 1])
  expect(downsample([3])).toEqual([3])
  expect(downsample([])).toEqual([])
})

test('a share below the target is said to be so in words, and none where nothing was asked', () => {
  const none = { requests: 0, failed: 0, answered: 0, slow: 0 }
  const empty = { submit: none, status: none }
  const text = targetsSection({
    lastHour: { submit: { requests: 100, failed: 2, answered: 100, slow: 0 }, status: none },
    lastDay: empty,
    last28Days: empty,
  }).toString()
  expect(text).toContain('<h2>The service, against its targets</h2>')
  expect(text).toContain('<span class="bad">below: 98 %</span>')
  expect(text).toContain('>100 %<')
  expect(text.match(/>none</g)).toHaveLength(4)
})

test('more causes than are read at a glance are counted', () => {
  const cause: Cause = {
    ...{ cause: 'aaaaaaaa', count: 1, state: 'failed', code: null, mayHaveArrived: true, shape: 'x', types: ['data'] },
    ...{ firstMs: nowMs, lastMs: nowMs, firstOutboxId: '1' },
  }
  const text = attentionSection({ causes: Array(10).fill(cause), lookedAt: 1_000, isCut: true }, nowMs).toString()
  expect(text).toContain('2 more causes')
  expect(text).toContain('failed, may have arrived')
  expect(text).toContain('Of the newest 1,000 that need attention.')
})

test('what the snapshot counts is read again when it counts otherwise, but not too often, and now and then', async () => {
  let elapsedMs = 0
  let reads = 0
  const stopwatch = () =>
    (
      (startMs) => () =>
        elapsedMs - startMs
    )(elapsedMs)
  const read = rereadOnChange({ stopwatch }, { minMs: 2_000, maxMs: 10_000 }, async () => ++reads)
  const at = async (ms: number, count: string) => {
    elapsedMs = ms
    return read(count)
  }
  expect(await at(0, '1')).toBe(1)
  expect(await at(1_000, '2')).toBe(1)
  expect(await at(2_000, '2')).toBe(2)
  expect(await at(11_000, '2')).toBe(2)
  expect(await at(12_000, '2')).toBe(3)
})

test('the page does not wait for an outbox that does not answer: it says so, and then what it answered', async () => {
  const answer = Promise.withResolvers<OutboxHalf>()
  let asked = 0
  let elapsedMs = 0
  const stopwatch = () =>
    (
      (startMs) => () =>
        elapsedMs - startMs
    )(elapsedMs)
  const clock = { nowMs: Date.now, stopwatch }
  const read = createOutboxReader({ databases: async () => ({}) as Databases, clock }, () => {
    asked += 1
    return answer.promise
  })
  expect(await read()).toEqual({ kind: 'awaited' })
  expect(await read()).toEqual({ kind: 'awaited' })
  expect(asked).toBe(1)
  const readOutbox: OutboxHalf = {
    kind: 'read',
    outbox: { waiting: 3, oldestMs: null } as never,
    hidden: null,
    readOnly: null,
  }
  elapsedMs = 500
  answer.resolve(readOutbox)
  expect(await read()).toEqual(readOutbox)
  // It took half a second: it is left alone for forty times as long.
  elapsedMs = 20_400
  await read()
  expect(asked).toBe(1)
  elapsedMs = 20_600
  await read()
  expect(asked).toBe(2)
})

test('what is shared is read once for all who ask, again when it is old, and again at once after it failed', async () => {
  let reads = 0
  let fails = true
  const read = shareRead(systemClock, 50, async () => {
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
