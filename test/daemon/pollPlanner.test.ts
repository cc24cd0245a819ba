import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PollPlanner, PollPlanUpdates } from '../../src/daemon/pollPlanner.ts'
import type { ProcessingTime } from '../../src/ledger/snapshot.ts'
import type { Resource } from '../../src/resources.ts'
import { openFixtureForFile } from '../commands/fixture.ts'

const WINDOW_MS = 60_000
const idle = { limit: 100, submissionsReady: 0, pollsDue: 0, submissionsSent: 0, tracked: 1, nowMs: 0 }
const scarce = { ...idle, submissionsReady: 500, tracked: 50 }

function press(planner: PollPlanner, seen: typeof idle): void {
  planner.noteDemand(seen)
  planner.noteLoad(seen, seen.nowMs)
}

/** Ten transactions that all took `ms`. */
const took = (resource: Resource, ms: number): ProcessingTime[] => Array.from({ length: 10 }, () => ({ resource, ms }))

function planner(...times: ProcessingTime[]): PollPlanner {
  const made = new PollPlanner(WINDOW_MS)
  made.learn(times)
  press(made, scarce)
  return made
}

describe('noteDemand', () => {
  const firstPollMs = (submissionsReady: number, captureWindow: number, outboxRows: number) => {
    const made = new PollPlanner(WINDOW_MS, captureWindow)
    made.learn(Array.from({ length: 10 }, (_, n) => ({ resource: 'data', ms: 2_000 + n * 12_000 })))
    made.noteOutboxRowsWaiting(outboxRows)
    press(made, { ...idle, limit: 1_000, submissionsReady })
    return made.nextPollDelayMs('data', 0)
  }

  test('rows in the outbox count if the ledger is full', () => {
    expect(firstPollMs(1_000, 1_000, 5_000)).toBeGreaterThan(firstPollMs(1_000, 1_000, 0))
    expect(firstPollMs(40, 50, 5_000)).toBeGreaterThan(firstPollMs(40, 50, 0))
  })

  test('rows that may have been captured since they were counted do not count twice', () => {
    expect(firstPollMs(300, 1_000, 700)).toBe(firstPollMs(300, 1_000, 0))
  })

  test('a capture window beyond what is counted can be full, too', () => {
    expect(firstPollMs(1_000, 100_000, 5_000)).toBeGreaterThan(firstPollMs(1_000, 100_000, 0))
  })
})

describe('nextPollDelayMs', () => {
  test('the processing times of data and orders are learned separately', () => {
    const made = planner(...took('data', 2_000), ...took('orders', 40_000))
    expect(made.nextPollDelayMs('data', 0)).toBe(2_000)
    expect(made.nextPollDelayMs('orders', 0)).toBe(40_000)
  })

  test('polls come earlier if no submission waits', () => {
    const made = planner(...took('data', 20_000))
    expect(made.nextPollDelayMs('data', 0)).toBe(20_000)
    press(made, idle)
    expect(made.nextPollDelayMs('data', 0)).toBeLessThan(20_000)
  })

  test('what was learned replaces what was learned before', () => {
    const made = planner(...took('data', 40_000))
    made.learn(took('data', 2_000))
    expect(made.nextPollDelayMs('data', 0)).toBe(2_000)
  })

  test('polls come later while the last six windows had many submissions', () => {
    const made = planner(...took('data', 20_000))
    const firstAfter = (windows: number, submissionsSent: number, from = 0) => {
      for (let n = 1; n <= windows; n++) press(made, { ...idle, submissionsSent, nowMs: (from + n) * WINDOW_MS })
      return made.nextPollDelayMs('data', 0)
    }
    const calm = firstAfter(6, 6)
    expect(firstAfter(6, 48, 6)).toBeGreaterThan(calm)
    expect(firstAfter(6, 6, 12)).toBe(calm)
  })

  test('several looks within a window count once', () => {
    const made = planner(...took('data', 20_000))
    press(made, idle)
    const calm = made.nextPollDelayMs('data', 0)
    press(made, { ...idle, submissionsSent: 48, nowMs: WINDOW_MS - 1 })
    expect(made.nextPollDelayMs('data', 0)).toBe(calm)
    press(made, { ...idle, submissionsSent: 48, nowMs: WINDOW_MS })
    expect(made.nextPollDelayMs('data', 0)).toBeGreaterThan(calm)
  })
})

describe('findPollsToMove', () => {
  const planned = {
    submissionId: 's',
    resource: 'data' as const,
    ageMs: 5_000,
    notDoneMs: null,
    inMs: 60_000,
  }
  /** Polls at an age of 8 s. */
  const made = planner(...took('data', 8_000))

  test('a poll that was planned late moves to where it would be planned now', () => {
    expect(made.findPollsToMove([planned])).toEqual([{ submissionId: 's', inMs: 3_000 }])
  })

  test('a poll that would already have come is due at once', () => {
    expect(made.findPollsToMove([{ ...planned, ageMs: 9_000 }])).toEqual([{ submissionId: 's', inMs: 0 }])
  })

  test('the new time counts from when the transaction was last seen pending', () => {
    expect(made.findPollsToMove([{ ...planned, ageMs: 25_000, notDoneMs: 20_000 }])).toEqual([
      { submissionId: 's', inMs: 5_000 },
    ])
  })

  test('a poll is never moved later, nor earlier by less than a fifth', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 120_000 }), fc.integer({ min: 1, max: 120_000 }), (ageMs, inMs) => {
        for (const move of made.findPollsToMove([{ ...planned, ageMs, inMs }]))
          expect(move.inMs).toBeLessThan(inMs * 0.8)
      }),
    )
  })

  test('polls are moved only if none of their requests is wanted for a submission', () => {
    const each = planner()
    expect(each.canMovePolls()).toBe(false)
    press(each, idle)
    expect(each.canMovePolls()).toBe(true)
    press(each, { ...idle, tracked: 0 })
    expect(each.canMovePolls()).toBe(false)
  })
})

describe('PollPlanUpdates', () => {
  const fixture = openFixtureForFile()

  function setup(windowMs = WINDOW_MS) {
    const made = new PollPlanner(windowMs)
    press(made, scarce)
    const woken: string[] = []
    const time = { ms: 0 }
    const { pool: ledger, queue } = fixture.ledger
    const updates = new PollPlanUpdates(
      made,
      { ledger, queue },
      { windowMs, clock: { stopwatch: () => () => time.ms }, onMoved: () => void woken.push('dispatch') },
    )
    return { made, updates, woken, time }
  }

  /** Five transactions that were last seen pending at an age of 10 s, and first seen done at 14 s. */
  async function endFive(): Promise<void> {
    for (let n = 0; n < 5; n++) {
      const id = await fixture.end({ state: 'accepted', transactionId: `t${n}`, pollInMs: 50_000 })
      await fixture.ledger.pool.query(
        `update outboxd.submission set state = 'completed', not_done_ms = 10000, done_ms = 14000,
           ended_at = now() where id = $1`,
        [id],
      )
    }
  }

  test('processing times are learned at the start, and every five rounds while records are sent or polled', async () => {
    const { made, updates, time } = setup()
    const before = made.nextPollDelayMs('data', 0)
    await updates.runOnce()
    await endFive()
    time.ms = 4_999
    await updates.runOnce()
    expect(made.nextPollDelayMs('data', 0)).toBe(before)
    time.ms = 5_000
    await updates.runOnce()
    expect(made.nextPollDelayMs('data', 0)).toBe(12_000)
  })

  test.each([
    ['before the next look', 0],
    ['after the next look', 1],
  ])('a record that comes alone is learned from, if its outcome is written %s', async (_, looksBefore) => {
    const { made, updates, time } = setup()
    made.noteDemand(idle)
    const look = () => {
      time.ms += 5_000
      return updates.runOnce()
    }
    for (let n = 0; n < 3; n++) await look()
    made.noteDemand({ ...idle, pollsDue: 1 })
    made.noteDemand(idle)
    for (let n = 0; n < looksBefore; n++) await look()
    await endFive()
    await look()
    expect(made.nextPollDelayMs('data', 0)).toBeGreaterThan(5_000)
  })

  test('an idle daemon asks the ledger nothing', async () => {
    const { made, updates, time } = setup()
    made.noteDemand(idle)
    for (let n = 0; n < 3; n++) {
      time.ms += 5_000
      await updates.runOnce()
    }
    expect(made.isBusy()).toBe(false)
  })

  test('if reading fails, the next round learns', async () => {
    const { made, updates } = setup()
    await endFive()
    await fixture.ledger.pool.query('alter table outboxd.submission rename to away')
    await expect(updates.runOnce()).rejects.toThrow('does not exist')
    await fixture.ledger.pool.query('alter table outboxd.away rename to submission')
    await updates.runOnce()
    expect(made.nextPollDelayMs('data', 0)).toBe(12_000)
  })

  test('if prices fall, polls come forward, and the dispatcher is woken', async () => {
    const { made, updates, woken } = setup()
    await endFive()
    const id = await fixture.end({ state: 'accepted', transactionId: 'late', pollInMs: 50_000 })
    await updates.runOnce()
    expect(woken).toEqual([])
    press(made, idle)
    await updates.runOnce()
    expect(woken).toEqual(['dispatch'])
    const { rows } = await fixture.ledger.pool.query<{ near: boolean }>(
      `select due_at < now() + interval '12 s' as near from outboxd.poll where submission_id = $1`,
      [id],
    )
    expect(rows).toEqual([{ near: true }])
    await updates.runOnce()
    expect(woken).toEqual(['dispatch'])
  })

  test('rounds come each second, or more often if the window is short', async () => {
    expect(await setup().updates.runOnce()).toBe(1_000)
    expect(await setup(6_000).updates.runOnce()).toBe(100)
  })
})
