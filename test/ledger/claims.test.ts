import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimQueuedSubmissions, isPostgresTransactionOver, requeueUnsentClaim } from '../../src/ledger/claims.ts'
import { writeTransitions } from '../../src/ledger/outcomes.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import type { Submission } from '../../src/model/submission.ts'
import { type Ledger, openLedger, outcomeBatch, transition } from '../support/ledger.ts'
import { until } from '../support/until.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const claimUpTo = (limit: number, id = randomUUID()) =>
  claimQueuedSubmissions(ledger.pool, { id, instanceId: randomUUID(), limit, who: 'test' })
const idsOf = (submissions: readonly { id: string }[]) => submissions.map(({ id }) => id)

test('a claim takes the oldest records first, and commits each as its next attempt', async () => {
  const ids = [...(await ledger.capture([{}, {}])), ...(await ledger.capture([{}, {}]))]
  const claimed = await claimUpTo(3)
  expect(idsOf(claimed)).toEqual(ids.slice(0, 3))
  expect(claimed[0]).toMatchObject({ state: 'sending', attempt: 1 })
  expect(claimed[0]?.waitedMs).toBeGreaterThanOrEqual(0)
  expect(await ledger.events(ids[0] ?? '')).toEqual(['new -> queued: captured', 'queued -> sending: claimed'])
  expect(idsOf(await claimUpTo(3))).toEqual(ids.slice(3))
})

test('a record that is not due yet, or waits for an earlier one of its key, is not claimed', async () => {
  const [due, later, first, second] = await ledger.capture([{}, {}, { key: 'k' }, { key: 'k' }])
  await ledger.pool.query(`update outboxd.submission set due_at = now() + interval '1 h' where id = $1`, [later])
  expect(idsOf(await claimUpTo(10))).toEqual([due, first])
  expect(await ledger.row(second ?? '')).toMatchObject({ state: 'queued', held: true })
})

test('concurrent claims never take the same record', async () => {
  const ids = await ledger.capture(Array.from({ length: 60 }, () => ({})))
  const claims = await Promise.all(Array.from({ length: 12 }, () => claimUpTo(7)))
  const claimed = idsOf(claims.flat())
  expect(new Set(claimed).size).toBe(claimed.length)
  expect(claimed.length + (await claimUpTo(100)).length).toBe(ids.length)
})

test('a claim whose answer was lost is given back whole, and no other claim is', async () => {
  const ids = await ledger.capture([{}, {}, {}])
  const lost = randomUUID()
  await claimUpTo(2, lost)
  await claimUpTo(1)
  await requeueUnsentClaim(ledger.pool, lost, 'test')
  expect(await ledger.countStates()).toEqual({ queued: 2, sending: 1 })
  expect(await ledger.row(ids[0] ?? '')).toMatchObject({ attempt: 1, claim_id: null, instance_id: null })
  expect(await ledger.events(ids[0] ?? '')).toContain('sending -> queued: never sent: the claim was lost')
  await requeueUnsentClaim(ledger.pool, lost, 'test')
  expect(idsOf(await claimUpTo(10))).toEqual(ids.slice(0, 2))
})

test('a claimed record says how long it has waited since it was due', async () => {
  const [id] = await ledger.capture([{}])
  await ledger.pool.query(`update outboxd.submission set due_at = due_at - interval '30 s' where id = $1`, [id])
  const [claimed] = await claimUpTo(1)
  expect(claimed?.waitedMs).toBeGreaterThanOrEqual(30_000)
  expect(claimed?.waitedMs).toBeLessThan(40_000)
})

test('a record of a lost claim is queued again, even if another instance has made it uncertain', async () => {
  const [id = '', other = ''] = await ledger.capture([{}, {}])
  const lost = randomUUID()
  const claimed = [...(await claimUpTo(1, lost)), ...(await claimUpTo(1))]
  const inDoubt = claimed.map((each) => transition(each, { state: 'uncertain', error: 'died' }))
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: inDoubt }))
  await requeueUnsentClaim(ledger.pool, lost, 'test')
  expect(await ledger.row(id)).toMatchObject({ state: 'queued', error: null, ended_at: null, report_due: true })
  expect(await ledger.events(id)).toContain('uncertain -> queued: never sent: the claim was lost')
  expect(await ledger.row(other)).toMatchObject({ state: 'uncertain' })
  expect((await readLedgerSnapshot(ledger.pool)).submissions).toMatchObject({ queued: 1, sending: 0, uncertain: 1 })
})

test('a record of a lost claim is queued again, even if another instance is just committing it as uncertain', async () => {
  const [id = ''] = await ledger.capture([{}])
  const lost = randomUUID()
  const [claimed] = await claimUpTo(1, lost)
  if (claimed === undefined) throw new Error('nothing was claimed')
  const doubting = await ledger.pool.connect()
  try {
    await doubting.query('begin')
    const inDoubt = transition(claimed, { state: 'uncertain', error: 'died' })
    await writeTransitions(doubting, [inDoubt], 'another instance')
    const requeued = requeueUnsentClaim(ledger.pool, lost, 'test')
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await until(
      async () => (await ledger.pool.query(waiting)).rowCount,
      (count) => count === 1,
    )
    await doubting.query('commit')
    await requeued
  } finally {
    doubting.release()
  }
  expect(await ledger.row(id)).toMatchObject({ state: 'queued', error: null })
})

test('a record of a lost claim that was sent again since keeps its later state', async () => {
  const [id = ''] = await ledger.capture([{}])
  const lost = randomUUID()
  const [first] = await claimUpTo(1, lost)
  const doubt = (each: Submission) =>
    ledger
      .dispatch()
      .writeOutcomes(outcomeBatch({ transitions: [transition(each, { state: 'uncertain', error: 'died' })] }))
  await doubt(first as Submission)
  await ledger.pool.query(`update outboxd.submission set state = 'queued', ended_at = null, due_at = now()`)
  const [second] = await claimUpTo(1)
  await doubt(second as Submission)
  await requeueUnsentClaim(ledger.pool, lost, 'test')
  expect(await ledger.row(id)).toMatchObject({ state: 'uncertain', attempt: 2 })
})

test('a Postgres transaction is over if it has ended, or if the server does not know it', async () => {
  const client = await ledger.pool.connect()
  await client.query('begin')
  const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid')
  const xid = rows[0]?.xid ?? ''
  expect(await isPostgresTransactionOver(ledger.pool, xid)).toBe(false)
  await client.query('commit')
  client.release()
  expect(await isPostgresTransactionOver(ledger.pool, xid)).toBe(true)
  expect(await isPostgresTransactionOver(ledger.pool, '999999999999')).toBe(true)
})
