import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { moveTimesAfterClockSetBack } from '../../src/ledger/clockSetBack.ts'
import { readOrphanedSubmissions, writeHeartbeat } from '../../src/ledger/instances.ts'
import type { Submission } from '../../src/model/submission.ts'
import { openBreaker } from '../support/breaker.ts'
import { claim, claimTrial, openLedgerForFile, outcomeBatch, setLimit, transition } from '../support/ledger.ts'
import { setClockBack } from '../support/setClock.ts'
import { until } from '../support/until.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool, 10))

const hour = 3_600_000

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

const instance = (host: string) => ({ id: randomUUID(), version: '1', host, settings: {} })

async function accept(submission: Submission, pollInMs: number): Promise<void> {
  const change = { state: 'accepted', transactionId: 'tx', pollInMs, unknown: true } as const
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [transition(submission, change)] }))
}

async function sendOne(): Promise<Submission> {
  const [sent] = (await claim(ledger.dispatch(), { submissions: 1 })).submissions
  if (sent === undefined) throw new Error('nothing was claimed')
  return sent
}

test('each heartbeat after the clock was set back says so, until the times are moved', async () => {
  const [one, two] = [instance('erp-1'), instance('erp-2')]
  const beat = async (of = one) => (await writeHeartbeat(ledger.pool, of)).isClockBack
  await beat()
  await beat(two)
  expect([await beat(), await beat(two)]).toEqual([false, false])
  await setClockBack(ledger.pool, hour)
  expect(await beat()).toBe(true)
  expect(await beat()).toBe(true) // the other's heartbeat still lies ahead
  await moveTimesAfterClockSetBack(ledger.pool)
  expect([await beat(), await beat(two)]).toEqual([false, false])
})

test('a clock that was set back is noticed by the only instance', async () => {
  const me = instance('erp-1')
  await writeHeartbeat(ledger.pool, me)
  await setClockBack(ledger.pool, hour)
  expect((await writeHeartbeat(ledger.pool, me)).isClockBack).toBe(true)
})

test('waiting work is due, pauses keep what is left of them, and no dead instance counts as alive', async () => {
  await ledger.capture([{}, {}, {}])
  const queued = await sendOne()
  const retried = transition(queued, { state: 'queued', dueInMs: 8_000 })
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [retried] }))
  await accept(await sendOne(), 5_000)
  await openBreaker(ledger.pool, { cause: 'unauthorized', forMs: 60_000 })
  await ledger.pool.query(
    `insert into outboxd.problem (kind, subject, detail, retry_at) values ('row_skipped', '9', '', now() + interval '5 s')`,
  )
  await ledger.pool.query(`update outboxd.submission set report_due = true, report_not_before = now() + interval '5 s'`)
  await writeHeartbeat(ledger.pool, instance('dead'))
  await setClockBack(ledger.pool, hour)
  const sinceMs = performance.now()
  for (let times = 0; times < 2; times++) {
    await moveTimesAfterClockSetBack(ledger.pool)
    for (const [column, table] of [
      ['due_at', 'submission'],
      ['report_not_before', 'submission'],
      ['accepted_at', 'submission'],
      ['retry_at', 'problem'],
      ['beat_at', 'instance'],
      ['started_at', 'instance'],
    ] as const)
      expect([column, await latest(column, table)]).toEqual([column, 0])
    expect(await latest('due_at', 'poll')).toBeLessThanOrEqual(5)
    await expectLeft('until', 'pause', 60, sinceMs)
  }
})

test('a time that is not set stays so: a daemon that lives has not stopped, and takes over what a dead one was sending', async () => {
  const [living, dead] = [instance('erp-1'), instance('erp-2')]
  await writeHeartbeat(ledger.pool, living)
  await writeHeartbeat(ledger.pool, dead)
  await ledger.capture([{}])
  const sent = await sendOne()
  await ledger.pool.query('update outboxd.submission set instance_id = $1', [dead.id])
  await setClockBack(ledger.pool, hour)
  await moveTimesAfterClockSetBack(ledger.pool)
  await writeHeartbeat(ledger.pool, living)
  const { rows } = await ledger.pool.query('select stopped_at from outboxd.instance')
  expect(rows).toEqual([{ stopped_at: null }, { stopped_at: null }])
  const row = await ledger.row(sent.id)
  expect([row.accepted_at, row.unknown_since]).toEqual([null, null])

  await ledger.pool.query(`update outboxd.instance set beat_at = beat_at - interval '1 min' where id = $1`, [dead.id])
  await ledger.pool.query(`update outboxd.instance set unbroken_since = beat_at - interval '1 min' where id = $1`, [
    living.id,
  ])
  expect((await writeHeartbeat(ledger.pool, living)).hasOrphans).toBe(true)
  expect((await readOrphanedSubmissions(ledger.pool, living.id, () => true)).map(({ id }) => id)).toEqual([sent.id])
})

test('a poll waits for its whole time from now, in its turn', async () => {
  await ledger.capture([{}])
  await accept(await sendOne(), 50_000)
  await setClockBack(ledger.pool, 24 * hour)
  await moveTimesAfterClockSetBack(ledger.pool)
  await moveTimesAfterClockSetBack(ledger.pool)
  const { rows } = await ledger.pool.query(
    `select extract(epoch from due_at - now()) between 40 and 50 as "isNext",
       abs(priority - extract(epoch from timestamptz '2026-01-01Z' - due_at)) <= 3 as "isInTurn" from outboxd.poll`,
  )
  expect(rows).toEqual([{ isNext: true, isInTurn: true }])
})

test('a trial that is due begins, and its deadline is its own', async () => {
  await ledger.capture([{}, {}])
  await openBreaker(ledger.pool, { forMs: 0 })
  await setClockBack(ledger.pool, hour)
  const sinceMs = performance.now()
  await moveTimesAfterClockSetBack(ledger.pool)
  expect((await claimTrial(ledger.dispatch())).submissions).toHaveLength(1)
  await expectLeft('trial_until', 'pause', 33, sinceMs)
})

test('a record that is accepted between the jump and the heartbeat keeps its age', async () => {
  await ledger.capture([{}])
  const sent = await sendOne()
  await setClockBack(ledger.pool, hour)
  await accept(await ledger.read(sent.id), 0)
  await moveTimesAfterClockSetBack(ledger.pool)
  const { ageMs, unknownForMs } = await ledger.read(sent.id)
  for (const age of [ageMs, unknownForMs]) {
    expect(age).toBeGreaterThanOrEqual(0)
    expect(age).toBeLessThan(10_000)
  }
})

test('moving times and writing an outcome at once do not deadlock: submissions are locked before polls', async () => {
  await ledger.capture([{}])
  await accept(await sendOne(), 50_000)
  await setClockBack(ledger.pool, hour)
  const outcome = await ledger.pool.connect()
  onTestFinished(() => outcome.release())
  await outcome.query('begin')
  await outcome.query('select from outboxd.submission for update')
  const moving = moveTimesAfterClockSetBack(ledger.pool)
  await until(
    () =>
      ledger.pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`),
    ({ rowCount }) => rowCount !== 0,
  )
  await outcome.query(`set local lock_timeout = '5s'`)
  await outcome.query('delete from outboxd.poll')
  await outcome.query('commit')
  await moving
})

describe("the database's clock is set forward by an hour:", () => {
  test('no instance counts as dead, and nothing is said', async () => {
    const me = instance('erp-1')
    await writeHeartbeat(ledger.pool, me)
    await ledger.capture([{}])
    await sendOne()
    await setClockBack(ledger.pool, -hour)
    expect((await writeHeartbeat(ledger.pool, me)).isClockBack).toBe(false)
    expect(await readOrphanedSubmissions(ledger.pool, me.id, () => true)).toEqual([])
  })
})
