import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { holdBackSurplusPermits, returnSlots, takeSlots } from '../../src/ledger/budget.ts'
import {
  addAnswerCountsAndDropEndedPauses,
  claimFirstRecordAfterTrial,
  claimTrialRequest,
  endPausesAfterTrial,
  giveBackTrialRequest,
  raisePause,
  readSendingState,
} from '../../src/ledger/pauses.ts'
import type { PauseToRaise, Slot } from '../../src/model.ts'
import { fitSlotsToBudget, type Ledger, openLedger, pauseBackoff } from '../support/ledger.ts'
import { openPool } from '../support/postgres.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const windowMs = 60_000
const leaseMs = 96_000
const instanceId = randomUUID()

const take = (permits: number) => takeSlots(ledger.pool, permits, leaseMs - windowMs, instanceId)
const back = (slots: readonly Slot[], used: boolean) =>
  returnSlots(
    ledger.pool,
    slots.map((slot) => ({ ...slot, used, submissions: 0, polls: 0, others: 0 })),
  )

/** Lets time pass: moves the times of slots and pauses into the past. */
async function pass(ms: number): Promise<void> {
  await ledger.pool.query(
    `update outboxd.slot set free_at = free_at - $1 * interval '1 ms' where free_at > '-infinity'`,
    [ms],
  )
  await ledger.pool.query(
    `update outboxd.pause set until = until - $1 * interval '1 ms', probe_until = probe_until - $1 * interval '1 ms'`,
    [ms],
  )
}

const sum = (slots: readonly { permits: number }[]) => slots.reduce((all, { permits }) => all + permits, 0)

async function free(): Promise<number> {
  const { rows } = await ledger.pool.query<{ free: number }>(
    'select coalesce(sum(permits), 0)::int as free from outboxd.slot where free_at <= clock_timestamp()',
  )
  return rows[0]?.free ?? 0
}

describe('slots', () => {
  test('no window holds more requests than the limit, whatever slots are taken, given back or lost', async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('take' as const),
          permits: fc.constantFrom(1, 2, 5, 6, 249, 500, 1_000),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('answer' as const), which: fc.nat(), used: fc.boolean() }),
      },
      {
        weight: 3,
        arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('die' as const), which: fc.nat() }) },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('fit' as const),
          limit: fc.constantFrom(1, 3, 8, 12, 499, 500, 501, 999, 1_001, 1_600),
        }),
      },
    )
    const arbitrary = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 40 }))
    await fc.assert(
      fc.asyncProperty(arbitrary, async ([limit, steps]) => {
        await ledger.reset()
        await fitSlotsToBudget(ledger.pool, limit)
        const beganMs = performance.now()
        let passedMs = 0
        const now = () => passedMs + performance.now() - beganMs
        const sentMs: number[] = []
        // Requests that were sent under a higher limit stay in the window, so the highest limit counts.
        const allowed = [limit]
        const inHand: { slot: Slot; takenMs: number }[] = []
        for (const each of steps) {
          switch (each.kind) {
            case 'take': {
              const takenMs = now() // a permit's age counts from before the taking
              for (const slot of await take(each.permits)) inHand.push({ slot, takenMs })
              break
            }
            case 'answer': {
              // The request leaves when its permit expires, or now if that is earlier; the answer comes now.
              const [held] = inHand.length > 0 ? inHand.splice(each.which % inHand.length, 1) : []
              if (!held) break
              const left = { at: Math.min(now(), held.takenMs + 30_000), times: held.slot.permits }
              if (each.used) for (let n = 0; n < left.times; n++) sentMs.push(left.at)
              await back([held.slot], each.used)
              break
            }
            case 'die': {
              // The request arrived after 36 s at the latest, and its instance died before it could say so.
              const [held] = inHand.length > 0 ? inHand.splice(each.which % inHand.length, 1) : []
              for (let n = 0; n < (held?.slot.permits ?? 0); n++) sentMs.push((held?.takenMs ?? 0) + 36_000)
              break
            }
            case 'pass':
              passedMs += each.ms
              await pass(each.ms)
              break
            case 'fit':
              await fitSlotsToBudget(ledger.pool, each.limit)
              allowed.push(each.limit)
          }
        }
        for (const { slot, takenMs } of inHand) for (let n = 0; n < slot.permits; n++) sentMs.push(takenMs + 36_000)
        expect(fullestWindow(sentMs, windowMs)).toBeLessThanOrEqual(Math.max(...allowed))
      }),
      { numRuns: 25 },
    )
  })

  test('several takers on several connections never get more than the limit, nor one slot twice', async () => {
    await fitSlotsToBudget(ledger.pool, 100)
    const pools = [1, 2, 3].map(() => openPool(ledger.url, { max: 4 }))
    const taken = await Promise.all(
      Array.from({ length: 60 }, (_, i) => takeSlots(pools[i % 3] as pg.Pool, 3, leaseMs, randomUUID())),
    )
    await Promise.all(pools.map((pool) => pool.end()))
    const ids = taken.flat().map(({ id }) => id)
    expect(ids.length).toBe(100)
    expect(new Set(ids).size).toBe(100)
  })

  test('the 101st request waits until the first has left the window', async () => {
    const shortMs = 300
    await fitSlotsToBudget(ledger.pool, 100, shortMs)
    const sentAtMs: number[] = []
    const takers = Array.from({ length: 4 }, async () => {
      while (sentAtMs.length < 150) {
        const slots = await takeSlots(ledger.pool, 5, 5_000, instanceId)
        for (const _ of slots) sentAtMs.push(performance.now())
        await returnSlots(
          ledger.pool,
          slots.map((slot) => ({ ...slot, used: true, submissions: 1, polls: 0, others: 0 })),
        )
      }
    })
    await Promise.all(takers)
    sentAtMs.sort((a, b) => a - b)
    expect((sentAtMs[100] ?? 0) - (sentAtMs[0] ?? 0)).toBeGreaterThanOrEqual(shortMs)
    expect(fullestWindow(sentAtMs, shortMs)).toBeLessThanOrEqual(100)
  })

  test('a slot whose holder died is free again only after its lease', async () => {
    await fitSlotsToBudget(ledger.pool, 1)
    expect(await take(1)).toHaveLength(1)
    await pass(leaseMs - 1_000)
    expect(await take(1)).toEqual([])
    await pass(1_000)
    expect(await take(1)).toHaveLength(1)
  })

  test('a slot that was used is free again one window after its answer, an unused one at once', async () => {
    await fitSlotsToBudget(ledger.pool, 2)
    const [used, unused] = await take(2)
    if (!used || !unused) throw new Error('there were two')
    await pass(5_000)
    await back([used], true)
    await back([unused], false)
    expect(await take(2)).toEqual([{ ...unused, lease: '2' }])
    await pass(windowMs - 1_000)
    expect(await take(1)).toEqual([])
    await pass(1_000)
    expect(await take(1)).toEqual([{ ...used, lease: '2' }])
  })

  test('a slot that is given back late, under an old lease, changes nothing', async () => {
    await fitSlotsToBudget(ledger.pool, 1)
    const old = await take(1)
    await pass(leaseMs)
    const [now] = await take(1)
    await back(old, false)
    expect(await free()).toBe(0)
    await back(old, true)
    await pass(windowMs + 1_000)
    expect(await free()).toBe(0)
    expect(now?.lease).toBe('2')
  })

  test('lowering the limit and raising it again gives back no spent request', async () => {
    await fitSlotsToBudget(ledger.pool, 10)
    await back(await take(10), true)
    await fitSlotsToBudget(ledger.pool, 3)
    expect(await take(10)).toEqual([])
    await fitSlotsToBudget(ledger.pool, 10)
    expect(await take(10)).toEqual([])
    await pass(windowMs)
    expect(await take(12)).toHaveLength(10)
  })

  test('slots that a higher limit adds are free as soon as an existing slot is', async () => {
    await fitSlotsToBudget(ledger.pool, 2)
    await back(await take(1), true)
    await fitSlotsToBudget(ledger.pool, 4)
    expect(await take(4)).toHaveLength(3)
    await fitSlotsToBudget(ledger.pool, 6)
    expect(await take(6)).toEqual([])
    await pass(windowMs)
    expect(await take(6)).toHaveLength(3)
  })

  test('a lower limit holds at once: slots above it are not given out', async () => {
    await fitSlotsToBudget(ledger.pool, 10)
    await fitSlotsToBudget(ledger.pool, 4)
    expect(await take(10)).toHaveLength(4)
  })

  test.each([
    [500, 249, 501],
    [1_000, 998, 1_001],
    [501, 501, 500],
  ])('after a change of the limit (%i, %i spent, then %i) only what the new limit leaves is free', async (...[
    before,
    spent,
    after,
  ]) => {
    await fitSlotsToBudget(ledger.pool, before)
    const taken = sum(await take(spent))
    await fitSlotsToBudget(ledger.pool, after)
    const left = sum(await take(10_000))
    expect(left).toBeLessThanOrEqual(Math.max(0, after - taken))
    // Up to 2 fewer if a slot stands for several requests.
    expect(left).toBeGreaterThanOrEqual(after - taken - 2)
  })

  test('a slot in hand while the limit changes counts until its lease expires, even if it is given back unused', async () => {
    await fitSlotsToBudget(ledger.pool, 2)
    const inHand = await take(2)
    await fitSlotsToBudget(ledger.pool, 3)
    await back(inHand, false)
    expect(await free()).toBe(0)
    await pass(leaseMs)
    expect(await free()).toBe(3)
  })

  test('if the window gets longer, every slot, even a free one, is busy longer by the difference', async () => {
    await fitSlotsToBudget(ledger.pool, 2)
    await back(await take(1), true)
    await fitSlotsToBudget(ledger.pool, 2, windowMs + 30_000)
    expect(await free()).toBe(0)
    await pass(29_000)
    expect(await free()).toBe(0)
    await pass(1_000)
    expect(await free()).toBe(1)
    await pass(windowMs)
    expect(await free()).toBe(2)
  })

  test('a slot that is given back stays busy for the window in force, not for its holder’s window', async () => {
    await fitSlotsToBudget(ledger.pool, 1, 2 * windowMs)
    await back(await take(1), true)
    await pass(windowMs + 1_000)
    expect(await free()).toBe(0)
    await pass(windowMs)
    expect(await free()).toBe(1)
  })

  test.each([
    1, 100, 500, 501, 999, 1_000, 1_001, 6_000, 12_345,
  ])('a limit of %i is cut into at most 500 slots that sum exactly to it', async (limit) => {
    await fitSlotsToBudget(ledger.pool, limit)
    await fitSlotsToBudget(ledger.pool, limit)
    const { rows } = await ledger.pool.query<{ permits: number }>('select permits from outboxd.slot where permits > 0')
    expect(sum(rows)).toBe(limit)
    expect(rows.length).toBeLessThanOrEqual(500)
    expect(await free()).toBe(limit)
  })

  test('if slots stand for several requests, a taker gets only as many as cover what it asked for', async () => {
    await fitSlotsToBudget(ledger.pool, 6_000)
    expect(await take(1)).toHaveLength(1)
    expect(sum(await take(13))).toBe(24)
    expect(sum(await take(10_000))).toBe(6_000 - 36)
  })

  test('if slots come to stand for more or fewer requests, spent requests stay spent', async () => {
    await fitSlotsToBudget(ledger.pool, 500)
    await back(await take(400), true)
    await fitSlotsToBudget(ledger.pool, 1_000)
    expect(await free()).toBe(600)
    await fitSlotsToBudget(ledger.pool, 500)
    expect(await free()).toBe(100)
  })
})

describe('the number of requests left that the service reports', () => {
  test('holds back the difference from the ledger’s count for one window', async () => {
    await fitSlotsToBudget(ledger.pool, 100)
    await back(await take(10), true)
    expect(await holdBackSurplusPermits(ledger.pool, 20, 0)).toBe(70)
    expect(await free()).toBe(20)
    await pass(windowMs)
    expect(await free()).toBe(100)
  })

  test('is compared only with slots that were free before the answer was on its way or waited to be written', async () => {
    await fitSlotsToBudget(ledger.pool, 100)
    await back(await take(90), true)
    await pass(windowMs) // they come free now
    expect(await free()).toBe(100)
    expect(await holdBackSurplusPermits(ledger.pool, 10, 5_000)).toBe(0)
    expect(await holdBackSurplusPermits(ledger.pool, 2, 5_000)).toBe(8) // of those that were free all the time
    await pass(6_000)
    expect(await holdBackSurplusPermits(ledger.pool, 10, 5_000)).toBe(82)
  })

  test('is ignored if it is only 5 lower than the ledger’s count, because the service counted a moment ago', async () => {
    await fitSlotsToBudget(ledger.pool, 100)
    expect(await holdBackSurplusPermits(ledger.pool, 95, 0)).toBe(0)
    expect(await free()).toBe(100)
    expect(await holdBackSurplusPermits(ledger.pool, 94, 0)).toBe(6)
  })

  test('frees no slot if it is higher than the ledger’s count', async () => {
    await fitSlotsToBudget(ledger.pool, 10)
    await back(await take(8), true)
    expect(await holdBackSurplusPermits(ledger.pool, 90, 0)).toBe(0)
    expect(await free()).toBe(2)
  })

  test('holds back every free slot if it is 0, but no slot in hand', async () => {
    await fitSlotsToBudget(ledger.pool, 10)
    const inHand = await take(1)
    expect(await holdBackSurplusPermits(ledger.pool, 0, 0)).toBe(9)
    await back(inHand, false)
    expect(await free()).toBe(1)
  })

  test('holds slots back without counting them as spent on submissions', async () => {
    await fitSlotsToBudget(ledger.pool, 10)
    await returnSlots(
      ledger.pool,
      (await take(10)).map((slot) => ({ ...slot, used: true, submissions: 1, polls: 0, others: 0 })),
    )
    await pass(windowMs)
    await holdBackSurplusPermits(ledger.pool, 0, 0)
    const { rows } = await ledger.pool.query<{ spent: number }>(
      'select sum(spent_on_submissions)::int as spent from outboxd.slot where free_at > clock_timestamp()',
    )
    expect(rows).toEqual([{ spent: 0 }])
  })
})

describe('pauses', () => {
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
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimFirstRecordAfterTrial(ledger.pool, leaseMs)))
    expect(claims.filter(Boolean)).toHaveLength(1)
    await giveBackTrialRequest(ledger.pool)
    expect(await claimFirstRecordAfterTrial(ledger.pool, leaseMs)).toBe(true)
    await through()
    expect(await readSendingState(ledger.pool)).toBe('open')
  })

  test('no trial begins while any pause runs', async () => {
    await raise(30_000)
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(false)
    await pass(30_000)
    await raise(null, 'unavailable')
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(false)
    await pass(300_000)
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(true)
  })

  test('of eight claims of the trial at once, one succeeds', async () => {
    await raise()
    await raise(null, 'unavailable')
    await pass(300_000)
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimTrialRequest(ledger.pool, leaseMs)))
    expect(claims.filter(Boolean)).toHaveLength(1)
  })

  test('another claim of the trial succeeds once the lease of the first has expired', async () => {
    await raise()
    await pass(2_000)
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(true)
    await pass(leaseMs - 1_000)
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(false)
    await pass(1_000)
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(true)
  })

  test('a trial that was given back can be claimed again', async () => {
    await raise()
    await pass(2_000)
    await claimTrialRequest(ledger.pool, leaseMs)
    await giveBackTrialRequest(ledger.pool)
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(true)
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
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(false)
  })

  test('an operator’s pause with an end is over at that time, without a trial', async () => {
    await ledger.pool.query(
      `insert into outboxd.pause (reason, detail, until) values ('operator', 'x', clock_timestamp() + interval '1 h')`,
    )
    expect(await readSendingState(ledger.pool)).toBe('paused')
    await pass(3_600_000)
    expect(await readSendingState(ledger.pool)).toBe('open')
    expect(await claimTrialRequest(ledger.pool, leaseMs)).toBe(false)
  })

  test('the database refuses any other pause without an end', async () => {
    await expect(
      ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('throttled', 'for ever')`),
    ).rejects.toThrow('check')
  })
})

/** The most requests that any half-open window of that length holds. */
function fullestWindow(atMs: readonly number[], lengthMs: number): number {
  const sorted = atMs.toSorted((a, b) => a - b)
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + lengthMs).length))
}
