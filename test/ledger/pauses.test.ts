import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  addAnswerCountsAndDropEndedPauses,
  chooseBackoffStepsMs,
  claimFirstRecordAfterTrial,
  claimTrialRequest,
  createPauseBackoff,
  endPausesAfterTrial,
  giveBackTrialRequest,
  raisePause,
  readSendingState,
} from '../../src/ledger/pauses.ts'
import type { PauseToRaise } from '../../src/model/service.ts'
import { type Ledger, openLedger, pauseBackoff } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const lostAfterMs = 96_000

/** Lets time pass: moves the times of pauses into the past. */
async function pass(ms: number): Promise<void> {
  await ledger.pool.query(
    `update outboxd.pause set until = until - $1 * interval '1 ms', probe_until = probe_until - $1 * interval '1 ms'`,
    [ms],
  )
}

const raise = (askedMs: number | null = null, reason: PauseToRaise['reason'] = 'throttled', hasLongBackoff = false) =>
  raisePause(ledger.pool, { reason, askedMs, detail: 'said so', hasLongBackoff }, pauseBackoff)

/** The length to which the pause was set. */
async function lengthMs(reason = 'throttled'): Promise<number> {
  const { rows } = await ledger.pool.query<{ ms: number }>(
    'select extract(epoch from until - set_at)::float8 * 1000 as ms from outboxd.pause where reason = $1',
    [reason],
  )
  return rows[0]?.ms ?? 0
}

test('a pause lasts 1, 2, 4, then 8 seconds, and no longer', async () => {
  const steps: number[] = []
  for (let i = 0; i < 6; i++) {
    await raise()
    steps.push(Math.round((await lengthMs()) / 1_000))
    await pass(10_000)
  }
  expect(steps).toEqual([1, 2, 4, 8, 8, 8])
})

test('ten 429 answers at once lengthen the pause by one step only', async () => {
  const backoff = { ...pauseBackoff, throttled: [30_000, 60_000, 120_000] } // longer than ten raises take
  const call: PauseToRaise = { reason: 'throttled', askedMs: null, detail: 'said so', hasLongBackoff: false }
  const raiseTen = () => Promise.all(Array.from({ length: 10 }, () => raisePause(ledger.pool, call, backoff)))
  await raiseTen()
  expect(await lengthMs()).toBeLessThanOrEqual(30_000)
  await pass(40_000)
  await raiseTen()
  const ms = await lengthMs()
  expect(ms).toBeGreaterThan(30_000)
  expect(ms).toBeLessThanOrEqual(60_000)
})

test('Retry-After counts if it is longer than the step, and not if it is shorter', async () => {
  await raise(30_000)
  expect(await lengthMs()).toBeGreaterThan(29_000)
  await raise()
  expect(await lengthMs()).toBeGreaterThan(29_000)
  await pass(40_000)
  await raise(10)
  expect(await lengthMs()).toBeGreaterThan(1_500)
})

const through = () =>
  addAnswerCountsAndDropEndedPauses(ledger.pool, [{ resource: 'data', met: null, hasServiceVerdict: true }])

test('after a record got through, the next pause begins at the first step again', async () => {
  for (let i = 0; i < 3; i++) {
    await raise()
    await pass(10_000)
  }
  await endPausesAfterTrial(ledger.pool)
  await through()
  await raise()
  expect(await lengthMs()).toBeLessThanOrEqual(1_000)
})

test('if only a trial ended the pause, the next one is a step longer, unless an hour has passed', async () => {
  const steps: number[] = []
  for (let i = 0; i < 4; i++) {
    await raise()
    steps.push(Math.round((await lengthMs()) / 1_000))
    await pass(10_000)
    await endPausesAfterTrial(ledger.pool)
  }
  expect(steps).toEqual([1, 2, 4, 8])
  await ledger.pool.query(`update outboxd.pause set cleared_at = cleared_at - interval '1 h'`)
  expect(await readSendingState(ledger.pool)).toBe('open')
  await raise()
  expect(await lengthMs()).toBeLessThanOrEqual(1_000)
})

test('the steps go up to half an hour if each try costs a record, and stay short if it costs none', async () => {
  const steps: number[] = []
  for (let i = 0; i < 6; i++) {
    await raise(null, 'unreachable', true)
    steps.push(Math.round((await lengthMs('unreachable')) / 1_000))
    await pass(3_600_000)
    await endPausesAfterTrial(ledger.pool)
  }
  expect(steps).toEqual([1, 2, 4, 60, 1_800, 1_800])
  await raise(null, 'unreachable')
  expect(Math.round((await lengthMs('unreachable')) / 1_000)).toBe(4)
})

test('after a trial only one of all instances may claim a record, and all may once that record got through', async () => {
  await raise(30_000)
  expect(await readSendingState(ledger.pool)).toBe('paused')
  await pass(30_000)
  await endPausesAfterTrial(ledger.pool)
  expect(await readSendingState(ledger.pool)).toBe('unproven')
  const claims = await Promise.all(
    Array.from({ length: 8 }, () => claimFirstRecordAfterTrial(ledger.pool, lostAfterMs)),
  )
  expect(claims.filter(Boolean)).toHaveLength(1)
  await giveBackTrialRequest(ledger.pool)
  expect(await claimFirstRecordAfterTrial(ledger.pool, lostAfterMs)).toBe(true)
  await through()
  expect(await readSendingState(ledger.pool)).toBe('open')
})

test('no trial begins while any pause runs', async () => {
  await raise(30_000)
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(false)
  await pass(30_000)
  await raise(null, 'unavailable')
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(false)
  await pass(300_000)
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(true)
})

test('of eight claims of the trial at once, one succeeds', async () => {
  await raise()
  await raise(null, 'unavailable')
  await pass(300_000)
  const claims = await Promise.all(Array.from({ length: 8 }, () => claimTrialRequest(ledger.pool, lostAfterMs)))
  expect(claims.filter(Boolean)).toHaveLength(1)
})

test('another claim of the trial succeeds once the first counts as lost', async () => {
  await raise()
  await pass(2_000)
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(true)
  await pass(lostAfterMs - 1_000)
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(false)
  await pass(1_000)
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(true)
})

test('a trial that was given back can be claimed again', async () => {
  await raise()
  await pass(2_000)
  await claimTrialRequest(ledger.pool, lostAfterMs)
  await giveBackTrialRequest(ledger.pool)
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(true)
})

test('a successful trial ends only the pauses whose time is over', async () => {
  await raise()
  await pass(2_000)
  await raise(null, 'unavailable')
  await endPausesAfterTrial(ledger.pool)
  const { rows } = await ledger.pool.query('select reason from outboxd.pause where cleared_at is null')
  expect(rows).toEqual([{ reason: 'unavailable' }])
  expect(await readSendingState(ledger.pool)).toBe('paused')
})

test('an operator’s pause without an end is ended neither by time nor by a trial', async () => {
  await ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'maintenance')`)
  await raise()
  await pass(3_600_000)
  await endPausesAfterTrial(ledger.pool)
  expect(await readSendingState(ledger.pool)).toBe('paused')
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(false)
})

test('an operator’s pause with an end is over at that time, without a trial', async () => {
  await ledger.pool.query(
    `insert into outboxd.pause (reason, detail, until) values ('operator', 'x', clock_timestamp() + interval '1 h')`,
  )
  expect(await readSendingState(ledger.pool)).toBe('paused')
  await pass(3_600_000)
  expect(await readSendingState(ledger.pool)).toBe('open')
  expect(await claimTrialRequest(ledger.pool, lostAfterMs)).toBe(false)
})

test('the database refuses any other pause without an end', async () => {
  await expect(
    ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('throttled', 'for ever')`),
  ).rejects.toThrow('check')
})

describe('the steps of the backoff', () => {
  const backoff = createPauseBackoff({ unavailablePauseMs: 300_000, unauthorizedPauseMs: 60_000 })
  const stepsOf = (reason: PauseToRaise['reason'], more: Partial<PauseToRaise> = {}) =>
    chooseBackoffStepsMs({ reason, askedMs: null, detail: '', ...more }, backoff)

  test('each reason has its own steps', () => {
    expect(stepsOf('throttled')).toEqual([1_000, 2_000, 4_000, 8_000])
    expect(stepsOf('unavailable')).toEqual([300_000])
    expect(stepsOf('unauthorized')).toEqual([60_000])
    expect(stepsOf('unreachable')[0]).toBe(1_000)
    expect(stepsOf('unreachable').at(-1)).toBe(60_000)
  })

  test('if each try costs a record, the wait grows up to half an hour', () => {
    const patient = stepsOf('unreachable', { hasLongBackoff: true })
    expect(patient[0]).toBe(1_000)
    expect(patient.at(-1)).toBe(1_800_000)
    expect(patient.toSorted((a, b) => a - b)).toEqual(patient)
  })

  test('if something other than the service answers, the first ten tries are a second apart', () => {
    const answered = stepsOf('unreachable', { answeredByOther: true })
    expect(answered.slice(0, 10)).toEqual(Array(10).fill(1_000))
    expect(answered.slice(10)).toEqual(stepsOf('unreachable', { hasLongBackoff: true }))
  })
})
