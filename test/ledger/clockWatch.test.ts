import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { computeHostClockLeadMs, moveDueTimesIfClockSetBack } from '../../src/ledger/clockWatch.ts'
import { readOrphanedSubmissions, writeHeartbeat } from '../../src/ledger/instances.ts'
import { readProblems } from '../../src/ledger/problems.ts'
import { openBreaker } from '../support/breaker.ts'
import { claim, claimTrial, type Ledger, openLedger, outcomeBatch, setLimit, transition } from '../support/ledger.ts'
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

const look = async (hostMs = 0) =>
  (await moveDueTimesIfClockSetBack(ledger.pool, 'erp-1', () => Date.now() + hostMs)).wasSetBackByMs

const problems = async () =>
  (await readProblems(ledger.pool, 10)).map(({ kind, subject, detail }) => `${kind} ${subject}: ${detail}`)

/** How far the latest time in the column lies in the future, in seconds. */
async function latest(column: string, table: string): Promise<number> {
  const { rows } = await ledger.pool.query<{ s: number }>(
    `select coalesce(ceil(extract(epoch from max(${column}) - clock_timestamp())), 0)::int as s from outboxd.${table}`,
  )
  return rows[0]?.s ?? 0
}

/** Expects the latest time to lie `seconds` ahead, less what has passed since `sinceMs`. */
async function expectLeft(column: string, table: string, seconds: number, sinceMs: number): Promise<void> {
  const left = await latest(column, table)
  expect(left).toBeLessThanOrEqual(seconds)
  expect(left).toBeGreaterThanOrEqual(Math.ceil(seconds - (performance.now() - sinceMs) / 1_000))
}

/** A jump back by an hour shows as an hour less what has passed since the last check of the clock. */
function expectHourBack(backMs: number, sinceMs: number): void {
  expect(backMs).toBeLessThanOrEqual(hour)
  expect(backMs).toBeGreaterThanOrEqual(hour - (performance.now() - sinceMs))
}

test('a clock that runs on normally raises no problem', async () => {
  for (let n = 0; n < 3; n++) expect(await look()).toBe(0)
  expect(await problems()).toEqual([])
})

test('each check of the clock is noted, for instances that have not checked yet', async () => {
  await look()
  await ledger.pool.query(`update outboxd.clock set seen_at = seen_at - interval '1 h'`)
  await look()
  const { rows } = await ledger.pool.query(
    `select seen_at > clock_timestamp() - interval '30 min' as "isNoted" from outboxd.clock`,
  )
  expect(rows).toEqual([{ isNoted: true }])
})

describe('the database’s clock is set back by an hour:', () => {
  test('one of two instances notices it, and the problem stands for an hour', async () => {
    const sinceMs = performance.now()
    await look()
    await setClockBack(ledger.pool, hour)
    const moved = await Promise.all([look(), look()])
    expectHourBack(Math.max(...moved), sinceMs)
    expect(Math.min(...moved)).toBe(0)
    expect(await problems()).toEqual([
      expect.stringMatching(/^clock_off the database: the database’s clock was set back by 3\d{3}(\.\d)? s\. /),
    ])
    await look()
    expect(await problems()).toHaveLength(1)
    await ledger.pool.query(`update outboxd.problem set seen_at = seen_at - interval '1 hour'`)
    await look()
    expect(await problems()).toEqual([])
  })

  test('due times and pauses keep their remaining time, and no dead instance counts as alive', async () => {
    await setLimit(ledger.pool, 10)
    await ledger.capture([{}, {}])
    const work = ledger.dispatch()
    const { submissions } = await claim(work, { submissions: 1 })
    for (const each of submissions)
      await work.writeOutcomes(
        outcomeBatch({
          transitions: [transition(each, { state: 'accepted', transactionId: 'tx', pollInMs: 5_000 })],
        }),
      )
    await openBreaker(ledger.pool, { cause: 'unauthorized', forMs: 60_000 })
    await writeHeartbeat(ledger.pool, { id: randomUUID(), version: '1', host: 'dead', settings: {} })
    await look()
    await setClockBack(ledger.pool, hour)
    const sinceMs = performance.now()
    await look()
    expect(await latest('due_at', 'submission')).toBeLessThanOrEqual(3)
    expect(await latest('due_at', 'poll')).toBeLessThanOrEqual(8)
    await expectLeft('until', 'pause', 60, sinceMs)
    expect(await latest('beat_at', 'instance')).toBe(0)
    expect((await ledger.read(submissions[0]?.id ?? '')).ageMs).toBeGreaterThanOrEqual(0)
  })
})

describe('after the clock was set back, and before an instance notices it,', () => {
  test('a trial that is due begins, and its deadline is its own', async () => {
    await setLimit(ledger.pool, 10)
    await ledger.capture([{}, {}])
    await openBreaker(ledger.pool, { forMs: 0 })
    await look()
    await setClockBack(ledger.pool, hour)
    const sinceMs = performance.now()
    await look()
    expect((await claimTrial(ledger.dispatch())).submissions).toHaveLength(1)
    await expectLeft('trial_until', 'pause', 33, sinceMs)
  })

  test('a record that is accepted keeps its age', async () => {
    await setLimit(ledger.pool, 10)
    await ledger.capture([{}])
    const work = ledger.dispatch()
    const [sent] = (await claim(work, { submissions: 1 })).submissions
    if (sent === undefined) throw new Error('nothing was claimed')
    await look()
    await setClockBack(ledger.pool, hour)
    const accepted = { state: 'accepted', transactionId: 'tx', pollInMs: 0, unknown: true } as const
    await work.writeOutcomes(outcomeBatch({ transitions: [transition(await ledger.read(sent.id), accepted)] }))
    await look()
    const { ageMs, unknownForMs } = await ledger.read(sent.id)
    expect(ageMs).toBeLessThan(10_000)
    expect(unknownForMs).toBeLessThan(10_000)
  })
})

test('moving due times and writing an outcome at once do not deadlock: submissions are locked before polls', async () => {
  await setLimit(ledger.pool, 10)
  await ledger.capture([{}])
  const work = ledger.dispatch()
  const { submissions } = await claim(work, { submissions: 1 })
  for (const each of submissions)
    await work.writeOutcomes(
      outcomeBatch({ transitions: [transition(each, { state: 'accepted', transactionId: 'tx', pollInMs: 50_000 })] }),
    )
  const sinceMs = performance.now()
  await look()
  await setClockBack(ledger.pool, hour)
  const outcome = await ledger.pool.connect()
  onTestFinished(() => outcome.release())
  await outcome.query('begin')
  await outcome.query('select from outboxd.submission for update')
  const looking = look()
  await until(
    () =>
      ledger.pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`),
    ({ rowCount }) => rowCount !== 0,
  )
  await outcome.query(`set local lock_timeout = '5s'`)
  await outcome.query('delete from outboxd.poll')
  await outcome.query('commit')
  expectHourBack(await looking, sinceMs)
})

test("the database's clock is set forward by an hour: no instance counts as dead", async () => {
  await setLimit(ledger.pool, 2)
  const me = { id: randomUUID(), version: '1', host: 'erp-1', settings: {} }
  await writeHeartbeat(ledger.pool, me)
  await ledger.capture([{}])
  await claim(ledger.dispatch(), { submissions: 1 })
  await look()
  await setClockBack(ledger.pool, -hour)
  expect(await look()).toBe(0)
  await writeHeartbeat(ledger.pool, me)
  expect(await readOrphanedSubmissions(ledger.pool, me.id)).toEqual([])
  expect(await problems()).toEqual([])
})

test('a difference between a host’s clock and the database’s is a problem for as long as it lasts', async () => {
  await writeHeartbeat(ledger.pool, { id: randomUUID(), version: '1', host: 'erp-1', settings: {} })
  await look()
  await look(-90_000)
  expect(await problems()).toEqual([expect.stringMatching(/^clock_off erp-1: .* 90(\.\d)? s behind the database’s$/)])
  await look()
  expect(await problems()).toEqual([])
})

test('the problem of a host’s clock keeps the time since which the clock is off', async () => {
  await writeHeartbeat(ledger.pool, { id: randomUUID(), version: '1', host: 'erp-1', settings: {} })
  await look()
  for (let n = 0; n < 3; n++) await look(-90_000)
  const [first] = await readProblems(ledger.pool, 10)
  await look(-60_000)
  expect(await readProblems(ledger.pool, 10)).toMatchObject([{ subject: 'erp-1', times: 4, sinceMs: first?.sinceMs }])
})

test('a slow answer does not count as a difference between two clocks', () => {
  expect(computeHostClockLeadMs(1_000, 61_000, 2_000)).toBe(0)
  expect(computeHostClockLeadMs(1_000, 1_100, 7_000)).toBe(-5_900)
  expect(computeHostClockLeadMs(9_000, 69_000, 2_000)).toBe(7_000)
})
