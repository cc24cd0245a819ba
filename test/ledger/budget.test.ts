import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  countFreeForSubmissions,
  countLimitAsSpent,
  countRequestsOfOtherClient,
  endAnsweredRequests,
  endUnsentRequests,
  lockBudget,
  tidyRequests,
} from '../../src/ledger/budget.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { beginTransaction, inTransaction } from '../../src/postgres/database.ts'
import { fullestWindow } from '../support/fullestWindow.ts'
import { claimRequests, countFree, openLedgerForFile, setLimit } from '../support/ledger.ts'
import { openPool } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const ledger = openLedgerForFile()

const windowMs = 60_000
const overAfterMs = 33_000
const instanceId = randomUUID()

const claim = (count: number) => claimRequests(ledger.pool, count, { instanceId, overAfterMs })
const answer = (ids: readonly string[]) => endAnsweredRequests(ledger.pool, instanceId, ids)
const free = () => countFree(ledger.pool)

/** Lets time pass: moves the ends of requests into the past. */
async function pass(ms: number): Promise<void> {
  await ledger.pool.query(
    `update outboxd.request set over_at = over_at - $1 * interval '1 ms', claimed_at = claimed_at - $1 * interval '1 ms'`,
    [ms],
  )
}

describe('requests', () => {
  test('no window holds more than the limit, whatever is claimed, answered, not sent, not answered or lost', async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('claim' as const), count: fc.integer({ min: 1, max: 12 }) }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constantFrom('answer' as const, 'unsent' as const, 'silence' as const),
          which: fc.nat(),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('change' as const), limit: fc.constantFrom(1, 3, 8, 12) }),
      },
    )
    const arbitrary = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 40 }))
    await fc.assert(
      fc.asyncProperty(arbitrary, async ([limit, steps]) => {
        await ledger.reset()
        await setLimit(ledger.pool, limit)
        const beganMs = performance.now()
        let passedMs = 0
        const now = () => passedMs + performance.now() - beganMs
        const arrivedMs: number[] = []
        // Requests that were sent under a higher limit stay in the window, so the highest limit counts.
        const allowed = [limit]
        const inHand: { id: string; claimedMs: number }[] = []
        for (const each of steps) {
          switch (each.kind) {
            case 'claim': {
              const claimedMs = now()
              for (const id of await claim(each.count)) inHand.push({ id, claimedMs })
              break
            }
            case 'answer':
            case 'unsent':
            case 'silence': {
              const [held] = inHand.length > 0 ? inHand.splice(each.which % inHand.length, 1) : []
              if (!held) break
              if (each.kind === 'unsent') await endUnsentRequests(ledger.pool, instanceId, [held.id])
              // The request arrives as late as it can: before its answer, or when it is over at the latest.
              if (each.kind === 'answer') arrivedMs.push(Math.min(now(), held.claimedMs + overAfterMs))
              if (each.kind === 'silence') arrivedMs.push(held.claimedMs + overAfterMs)
              if (each.kind === 'answer') await answer([held.id])
              break
            }
            case 'pass':
              passedMs += each.ms
              await pass(each.ms)
              break
            case 'change':
              await setLimit(ledger.pool, each.limit)
              allowed.push(each.limit)
          }
        }
        for (const { claimedMs } of inHand) arrivedMs.push(claimedMs + overAfterMs)
        expect(fullestWindow(arrivedMs, windowMs)).toBeLessThanOrEqual(Math.max(...allowed))
      }),
      { numRuns: 25 },
    )
  })

  test.each([
    10, 100, 10_000,
  ])('several claimers on several connections get a limit of %d, and no more', async (limit) => {
    await setLimit(ledger.pool, limit)
    const pools = [1, 2, 3].map(() => openPool(ledger.url, { max: 4 }))
    const most = Math.ceil(limit / 40)
    const claimed = await Promise.all(
      Array.from({ length: 60 }, (_, i) => claimRequests(pools[i % 3] as pg.Pool, most, { instanceId: randomUUID() })),
    )
    await Promise.all(pools.map((pool) => pool.end()))
    expect(new Set(claimed.flat()).size).toBe(limit)
    expect(await free()).toBe(0)
  })

  test('a claim that waits for another one counts its requests, too', async () => {
    await setLimit(ledger.pool, 2)
    await using first = await beginTransaction(ledger.pool)
    await lockBudget(first.db)
    const second = claim(2)
    await until(isAnyoneWaiting, (isWaiting) => isWaiting)
    await first.db.query(
      `insert into outboxd.request (instance_id, purpose, over_at) values (gen_random_uuid(), 'poll', now())`,
    )
    await first.commit()
    expect(await second).toHaveLength(1)
  })

  test('the 101st request waits until the first has left the window', async () => {
    const shortMs = 300
    await setLimit(ledger.pool, 100, shortMs)
    const sentAtMs: number[] = []
    const claimers = Array.from({ length: 4 }, async () => {
      while (sentAtMs.length < 150) {
        const ids = await claim(5)
        for (const _ of ids) sentAtMs.push(performance.now())
        await answer(ids)
      }
    })
    await Promise.all(claimers)
    sentAtMs.sort((a, b) => a - b)
    expect((sentAtMs[100] ?? 0) - (sentAtMs[0] ?? 0)).toBeGreaterThanOrEqual(shortMs)
    expect(fullestWindow(sentAtMs, shortMs)).toBeLessThanOrEqual(100)
  })

  test('the request of a dead process counts until a window after it is over at the latest', async () => {
    await setLimit(ledger.pool, 1)
    expect(await claim(1)).toHaveLength(1)
    await pass(overAfterMs + windowMs - 5_000)
    expect(await claim(1)).toEqual([])
    await pass(5_000)
    expect(await claim(1)).toHaveLength(1)
  })

  test('an answered request counts for one window, one that was not sent no longer', async () => {
    await setLimit(ledger.pool, 2)
    const [answered = '', unsent = ''] = await claim(2)
    await pass(5_000)
    await answer([answered])
    await endUnsentRequests(ledger.pool, instanceId, [unsent])
    expect(await claim(2)).toHaveLength(1)
    await pass(windowMs - 5_000)
    expect(await claim(1)).toEqual([])
    await pass(5_000)
    expect(await claim(1)).toHaveLength(1)
  })

  test('an answer that is written late does not make its request count again', async () => {
    await setLimit(ledger.pool, 1)
    const late = await claim(1)
    await pass(overAfterMs + windowMs)
    await answer(late)
    expect(await free()).toBe(1)
  })

  test('an instance ends only its own requests', async () => {
    await setLimit(ledger.pool, 1)
    const ids = await claim(1)
    await endUnsentRequests(ledger.pool, randomUUID(), ids)
    await endAnsweredRequests(ledger.pool, randomUUID(), ids)
    await pass(windowMs)
    expect(await free()).toBe(0)
  })

  test('lowering the limit and raising it again gives back no spent request', async () => {
    await setLimit(ledger.pool, 10)
    await answer(await claim(10))
    await setLimit(ledger.pool, 3)
    expect(await claim(10)).toEqual([])
    await setLimit(ledger.pool, 10)
    expect(await claim(10)).toEqual([])
    await pass(windowMs)
    expect(await claim(12)).toHaveLength(10)
  })

  test('a changed limit holds at once', async () => {
    await setLimit(ledger.pool, 2)
    await answer(await claim(1))
    await setLimit(ledger.pool, 4)
    expect(await claim(5)).toHaveLength(3)
    await setLimit(ledger.pool, 1)
    expect(await claim(1)).toEqual([])
  })

  test('a longer window counts requests that no longer counted', async () => {
    await setLimit(ledger.pool, 1)
    await answer(await claim(1))
    await pass(windowMs)
    expect(await free()).toBe(1)
    await setLimit(ledger.pool, 1, 2 * windowMs)
    expect(await free()).toBe(0)
    await pass(windowMs)
    expect(await free()).toBe(1)
  })

  test('the budget says when the next request may be made, even under a lower limit', async () => {
    const nextFreeInMs = async () => {
      const { rows } = await ledger.pool.query<{ ms: number | null }>(
        'select extract(epoch from next_free_at - clock_timestamp())::float8 * 1000 as ms from outboxd.budget',
      )
      return rows[0]?.ms ?? null
    }
    await setLimit(ledger.pool, 3)
    await answer(await claim(1))
    await pass(40_000)
    await answer(await claim(1))
    expect(await nextFreeInMs()).toBeNull()
    await answer(await claim(1))
    expect(await nextFreeInMs()).toBeLessThan(20_000)
    await setLimit(ledger.pool, 2)
    expect(await nextFreeInMs()).toBeGreaterThan(50_000)
  })

  test('while the whole limit counts as spent, no request is free, though the ledger knows of none', async () => {
    await setLimit(ledger.pool, 3)
    await countLimitAsSpent(ledger.pool, overAfterMs)
    expect(await claim(1)).toEqual([])
    await ledger.pool.query(`update outboxd.ledger set spent_at = clock_timestamp() - interval '61 s'`)
    expect(await claim(1)).toHaveLength(1)
  })

  test('requests of more than an hour ago are deleted, but none that counts', async () => {
    const left = async () => (await ledger.pool.query('select from outboxd.request')).rowCount
    await setLimit(ledger.pool, 10)
    await answer(await claim(1))
    await pass(3_500_000)
    await tidyRequests(ledger.pool)
    expect(await left()).toBe(1)
    await pass(200_000)
    await setLimit(ledger.pool, 10, 86_400_000)
    await tidyRequests(ledger.pool)
    expect(await left()).toBe(1)
    await setLimit(ledger.pool, 10)
    await tidyRequests(ledger.pool)
    expect(await left()).toBe(0)
  })

  test('the newest request of an instance that is known stays, however old, because the instance looks for it', async () => {
    await setLimit(ledger.pool, 10)
    const [other, instanceId] = [randomUUID(), randomUUID()]
    await writeHeartbeat(ledger.pool, { id: instanceId, version: 'test', host: 'test', settings: {} })
    for (const id of [instanceId, instanceId, other]) await claimRequests(ledger.pool, 1, { instanceId: id })
    await pass(7_200_000)
    await tidyRequests(ledger.pool)
    const { rows } = await ledger.pool.query('select instance_id as id from outboxd.request')
    expect(rows).toEqual([{ id: instanceId }])
  })

  test('after the database’s clock was set back by an hour, requests count from now on, each as long as it may', async () => {
    await setLimit(ledger.pool, 3)
    await claimRequests(ledger.pool, 1, { overAfterMs: 123_000 }) // of a command with a longer timeout than any daemon's
    await answer(await claim(1))
    await countLimitAsSpent(ledger.pool, overAfterMs)
    await ledger.pool.query(`update outboxd.request set claimed_at = claimed_at + interval '1 h', over_at = over_at + interval '1 h';
      update outboxd.ledger set spent_at = spent_at + interval '1 h', spent_set_at = spent_set_at + interval '1 h'`)
    await tidyRequests(ledger.pool)
    const { rows } = await ledger.pool.query<{ s: number }>(
      `select round(extract(epoch from at - clock_timestamp()))::float8 as s
       from (select over_at as at from outboxd.request union all select spent_at from outboxd.ledger) ends order by 1`,
    )
    expect(rows.map(({ s }) => Math.round(s / 10) * 10)).toEqual([0, 30, 120])
  })

  test('requests of now are left as they are', async () => {
    await setLimit(ledger.pool, 3)
    await claimRequests(ledger.pool, 1, { overAfterMs: 123_000 })
    await tidyRequests(ledger.pool)
    const { rows } = await ledger.pool.query<{ isLong: boolean }>(
      `select over_at > clock_timestamp() + interval '110 s' as "isLong" from outboxd.request`,
    )
    expect(rows).toEqual([{ isLong: true }])
  })
})

describe('the number of requests left that the service reports', () => {
  const count = (remaining: number, sinceRequestMs = 0) =>
    inTransaction(ledger.pool, (db) => countRequestsOfOtherClient(db, instanceId, { remaining, sinceRequestMs }))

  test('counts the difference from the ledger’s count for one window', async () => {
    await setLimit(ledger.pool, 100)
    await answer(await claim(10))
    expect(await count(20)).toBe(70)
    expect(await free()).toBe(20)
    await pass(windowMs)
    expect(await free()).toBe(100)
  })

  test('leaves nothing to another client after RATE_LIMIT_REQUESTS was lowered by what that client spends', async () => {
    await setLimit(ledger.pool, 100)
    await answer(await claim(10))
    expect(await count(20)).toBe(70)
    await pass(windowMs)
    await setLimit(ledger.pool, 30)
    await answer(await claim(10))
    expect(await count(20)).toBe(0)
    expect(await free()).toBe(20)
  })

  test('is compared with what was free before the answer was on its way or waited to be written', async () => {
    await setLimit(ledger.pool, 100)
    await answer(await claim(90))
    await pass(windowMs) // they stop counting now
    expect(await free()).toBe(100)
    expect(await count(10, 5_000.25)).toBe(0) // a stopwatch gives fractions
    expect(await count(2, 5_000)).toBe(8)
    await pass(6_000)
    expect(await count(10, 5_000)).toBe(82)
  })

  test('is ignored if it is only 5 lower than the ledger’s count, because the service counted a moment ago', async () => {
    await setLimit(ledger.pool, 100)
    expect(await count(95)).toBe(0)
    expect(await free()).toBe(100)
    expect(await count(94)).toBe(6)
  })

  test('frees no request if it is higher than the ledger’s count', async () => {
    await setLimit(ledger.pool, 10)
    await answer(await claim(8))
    expect(await count(90)).toBe(0)
    expect(await free()).toBe(2)
  })

  test('leaves nothing free if it is 0, but takes no claimed request away', async () => {
    await setLimit(ledger.pool, 10)
    const claimed = await claim(1)
    expect(await count(0)).toBe(9)
    await endUnsentRequests(ledger.pool, instanceId, claimed)
    expect(await free()).toBe(1)
  })

  test('is counted once if two instances report it at the same time', async () => {
    await setLimit(ledger.pool, 100)
    expect((await Promise.all([count(10), count(10)])).toSorted()).toEqual([0, 90])
  })
})

describe('free requests for submissions', () => {
  const wanted = (submissions: number, polls: number) => ({ submissions, polls, rarePolls: 0 })

  test.each([
    [10, 10, 0, 10],
    [10, 4, 6, 4],
    [6, 8, 2, 4],
    [6, 8, 8, 3],
    [1, 8, 8, 0],
    [1, 8, 0, 1],
    [0, 8, 8, 0],
  ])('of %d free, with %d submissions and %d polls wanted, %d go to submissions', (count, posts, polls, given) => {
    expect(countFreeForSubmissions(wanted(posts, polls), count)).toBe(given)
  })

  test('submissions never get more than they want, and leave polls what they want of half', () => {
    fc.assert(
      fc.property(fc.nat(500), fc.nat(500), fc.nat(500), (submissions, polls, count) => {
        const given = countFreeForSubmissions(wanted(submissions, polls), count)
        expect(given).toBeGreaterThanOrEqual(0)
        expect(given).toBeLessThanOrEqual(Math.min(submissions, count))
        expect(count - given).toBeGreaterThanOrEqual(Math.min(polls, Math.ceil(count / 2)))
      }),
    )
  })
})

async function isAnyoneWaiting(): Promise<boolean> {
  const { rowCount } = await ledger.pool.query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  )
  return rowCount !== 0
}
