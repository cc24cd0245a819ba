import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { takeSlots } from '../../src/ledger/budget.ts'
import { createClockWatch, jumpOf } from '../../src/ledger/clockWatch.ts'
import { readOrphaned, writeHeartbeat } from '../../src/ledger/instances.ts'
import { raisePause } from '../../src/ledger/pauses.ts'
import { readProblems } from '../../src/ledger/problems.ts'
import { claim, fitSlots, type Ledger, openLedger, outcomeBatch, pauseBackoff, transition } from '../support/ledger.ts'
import { setClockBack } from '../support/setClock.ts'
import { until } from '../support/until.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(async () => {
  await ledger.reset()
  await ledger.pool.query('truncate outboxd.clock')
})

const hour = 3_600_000

function instance() {
  const clocks = { hostMs: 0, uptimeMs: 0 }
  const watch = createClockWatch({
    pool: ledger.pool,
    host: 'erp-1',
    nowMs: () => Date.now() + clocks.hostMs,
    uptimeMs: () => performance.now() + clocks.uptimeMs,
  })
  return { clocks, look: watch.look }
}

const problems = async () =>
  (await readProblems(ledger.pool, 10)).map(({ kind, subject, detail }) => `${kind} ${subject}: ${detail}`)

/** The most that lies in the future, in seconds. */
async function latest(column: string, table: string): Promise<number> {
  const { rows } = await ledger.pool.query<{ s: number }>(
    `select coalesce(ceil(extract(epoch from max(${column}) - clock_timestamp())), 0)::int as s from outboxd.${table}`,
  )
  return rows[0]?.s ?? 0
}

/** What lies in the future lies there by so many seconds, but for those that have gone by since. */
async function expectLeft(column: string, table: string, seconds: number, sinceMs: number): Promise<void> {
  const left = await latest(column, table)
  expect(left).toBeLessThanOrEqual(seconds)
  expect(left).toBeGreaterThanOrEqual(Math.ceil(seconds - (performance.now() - sinceMs) / 1_000))
}

/** Of a jump back by an hour nobody sees what has gone by since the clock was looked at. */
function expectHourBack(jumpMs: number, sinceMs: number): void {
  expect(jumpMs).toBeGreaterThanOrEqual(-hour)
  expect(jumpMs).toBeLessThanOrEqual(-hour + performance.now() - sinceMs)
}

test('a clock that goes on as it should is nobody’s business', async () => {
  const { look } = instance()
  for (let n = 0; n < 3; n++) expect((await look()).jumpMs).toBe(0)
  expect(await problems()).toEqual([])
})

test('each look is noted, for those who have not looked before', async () => {
  const { look } = instance()
  await look()
  await ledger.pool.query(`update outboxd.clock set seen_at = seen_at - interval '1 h'`)
  await look()
  const { rows } = await ledger.pool.query(
    `select seen_at > clock_timestamp() - interval '30 min' as "isNoted" from outboxd.clock`,
  )
  expect(rows).toEqual([{ isNoted: true }])
})

test('a jump while a connection is waited for is not taken for the wait', async () => {
  const { clocks, look } = instance()
  await look()
  const pool = ledger.pool as { query(...asked: unknown[]): unknown }
  const query = pool.query.bind(pool)
  const waiting = vi.spyOn(pool, 'query').mockImplementationOnce((...asked) => {
    clocks.uptimeMs += 6_000 // which the database's clock does not show
    return query(...asked)
  })
  onTestFinished(() => waiting.mockRestore())
  expect((await look()).jumpMs).toBeCloseTo(-6_000, -3)
})

describe('set back by an hour', () => {
  test('it is noticed once, also by an instance that has just been started, and said for an hour', async () => {
    const sinceMs = performance.now()
    await instance().look()
    await setClockBack(ledger.pool, hour)
    const [one, other] = [instance(), instance()]
    expectHourBack((await one.look()).jumpMs, sinceMs)
    expect((await other.look()).jumpMs).toBe(0)
    expect(await problems()).toEqual([
      expect.stringMatching(/^clock_off the database: the database’s clock jumped back by 3\d{3}(\.\d)? s, noticed /),
    ])
    await ledger.pool.query(`update outboxd.clock set jumped_at = jumped_at - interval '1 hour'`)
    await one.look()
    expect(await problems()).toEqual([])
  })

  test('a slot is free when it was to be, and not a moment earlier than its holder may need it', async () => {
    await fitSlots(ledger.pool, 3)
    await takeSlots(ledger.pool, 1, 36_000, randomUUID())
    await instance().look()
    await setClockBack(ledger.pool, hour)
    expect(await latest('free_at', 'slot')).toBeGreaterThan(3_600)
    let sinceMs = performance.now()
    await instance().look()
    await expectLeft('free_at', 'slot', 96, sinceMs)
    // One that is taken after the jump is left as it is.
    sinceMs = performance.now()
    await takeSlots(ledger.pool, 1, 60_000, randomUUID())
    await instance().look()
    await expectLeft('free_at', 'slot', 120, sinceMs)
  })

  test('what is due is due, a pause lasts as long as it was to, and a dead instance is not alive for an hour', async () => {
    await fitSlots(ledger.pool, 10)
    await ledger.capture([{}, {}])
    const work = ledger.dispatch()
    const { submissions } = await claim(work, { submissions: 1 })
    for (const each of submissions)
      await work.writeOutcomes(
        outcomeBatch({
          transitions: [transition(each, { state: 'accepted', transactionId: 'tx', pollInMs: 5_000 })],
        }),
      )
    await raisePause(ledger.pool, { reason: 'unauthorized', askedMs: null, detail: 'said so' }, pauseBackoff)
    await writeHeartbeat(ledger.pool, { id: randomUUID(), version: '1', host: 'dead' })
    await instance().look()
    await setClockBack(ledger.pool, hour)
    const sinceMs = performance.now()
    await instance().look()
    expect(await latest('due_at', 'submission')).toBeLessThanOrEqual(3)
    expect(await latest('poll_at', 'submission')).toBeLessThanOrEqual(8)
    await expectLeft('until', 'pause', 60, sinceMs)
    expect(await latest('beat_at', 'instance')).toBe(0)
    const { rows } = await ledger.pool.query(`select from pgboss.job where start_after > now() + interval '8 s'`)
    expect(rows).toEqual([])
    expect((await ledger.read(submissions[0]?.id ?? '')).ageMs).toBeGreaterThanOrEqual(0)
  })
})

describe('set forward by an hour', () => {
  test('slots and pauses get what they lacked, and nobody is called dead for it', async () => {
    await fitSlots(ledger.pool, 2)
    const me = { id: randomUUID(), version: '1', host: 'erp-1' }
    await writeHeartbeat(ledger.pool, me)
    await ledger.capture([{}])
    await claim(ledger.dispatch(), { submissions: 1 })
    const { clocks, look } = instance()
    await look()
    // The stored times lie an hour back, and an hour less has gone by here than in the database.
    await setClockBack(ledger.pool, -hour)
    clocks.uptimeMs -= hour
    expect((await look()).jumpMs).toBeCloseTo(hour, -3)
    expect(await latest('free_at', 'slot')).toBeGreaterThan(50)
    await writeHeartbeat(ledger.pool, me)
    expect(await readOrphaned(ledger.pool, me.id)).toEqual([])
    expect(await problems()).toEqual([expect.stringContaining('jumped forward by 3')])
  })

  test('of two instances that notice one moves the times', async () => {
    const [one, other] = [instance(), instance()]
    await one.look()
    await other.look()
    for (const { clocks } of [one, other]) clocks.uptimeMs -= hour
    expect((await one.look()).jumpMs).toBeCloseTo(hour, -3)
    expect((await other.look()).jumpMs).toBe(0)
  })
})

test('an outcome that is written meanwhile goes on: jobs are moved before submissions (a deadlock ended one of both)', async () => {
  await fitSlots(ledger.pool, 10)
  await ledger.capture([{}])
  const work = ledger.dispatch()
  const { submissions } = await claim(work, { submissions: 1 })
  for (const each of submissions)
    await work.writeOutcomes(
      outcomeBatch({ transitions: [transition(each, { state: 'accepted', transactionId: 'tx', pollInMs: 50_000 })] }),
    )
  const { look } = instance()
  const sinceMs = performance.now()
  await look()
  await setClockBack(ledger.pool, hour)
  const outcome = await ledger.pool.connect()
  onTestFinished(() => outcome.release())
  await outcome.query('begin')
  await outcome.query('select from pgboss.job for update')
  const looking = look()
  await until(
    () =>
      ledger.pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`),
    ({ rowCount }) => rowCount !== 0,
  )
  await outcome.query(`set local lock_timeout = '5s'`)
  await outcome.query('update outboxd.submission set polls = polls + 1')
  await outcome.query('commit')
  expectHourBack((await looking).jumpMs, sinceMs)
})

test('a host whose clock differs from the database’s says so for as long as it does', async () => {
  const { clocks, look } = instance()
  await writeHeartbeat(ledger.pool, { id: randomUUID(), version: '1', host: 'erp-1' })
  await look()
  clocks.hostMs = -90_000
  await look()
  expect(await problems()).toEqual([expect.stringMatching(/^clock_off erp-1: .* 90(\.\d)? s behind the database’s$/)])
  clocks.hostMs = 0
  await look()
  expect(await problems()).toEqual([])
})

test.each([
  { what: 'no time to speak of', db: 1_003, up: 1_000, jump: 0 },
  { what: 'a suspended machine, with its database', db: hour, up: hour, jump: 0 },
  { what: 'less than can be told from a slow network', db: 4_900, up: 3_000, jump: 0 },
  { what: 'back by more than the time between two looks', db: -2_000, up: 3_000, jump: -5_000 },
  { what: 'back by no more than the time between two looks', db: 500, up: 3_500, jump: -3_000 },
  { what: 'forward', db: hour + 3_000, up: 3_000, jump: hour },
])('$what', ({ db, up, jump }) => {
  const last = { dbMs: 0, uptimeMs: 0, doubtMs: 0, jumps: 0 }
  expect(jumpOf({ dbMs: db, uptimeMs: up, doubtMs: 0 }, { seenMs: 0, jumps: 0, jumpMs: 0 }, last)).toBe(jump)
})

test.each([
  { what: 'an answer that took long is no jump', doubtMs: 4_000, noted: [], jump: 0 },
  { what: 'what another has measured is not moved again', doubtMs: 0, noted: [-5_000], jump: 0 },
  { what: 'what another could not measure is moved, too', doubtMs: 0, noted: [-2_000], jump: -3_000 },
  { what: 'several that others noticed are theirs', doubtMs: 0, noted: [-2_000, -3_000], jump: 0 },
])('back by 5 s: $what', ({ doubtMs, noted, jump }) => {
  const last = { dbMs: 0, uptimeMs: 0, doubtMs: 0, jumps: 0 }
  const seen = { seenMs: -2_000, jumps: noted.length, jumpMs: noted.at(-1) ?? 0 }
  expect(jumpOf({ dbMs: -2_000, uptimeMs: 3_000, doubtMs }, seen, last)).toBe(jump)
})
