import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { claimQueuedSubmissions, requeueUnsentClaim } from '../../src/ledger/claims.ts'
import type { Submission } from '../../src/model/submission.ts'
import {
  claim,
  historyOf,
  openLedgerForFile,
  outcomeBatch,
  pauseBackoff,
  setLimit,
  TestDispatch,
  transition,
} from '../support/ledger.ts'

const ledger = openLedgerForFile()

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

test('Postgres ends a claim whose process stops for 2 s, because it holds up all others', async () => {
  await ledger.capture([{}])
  await setLimit(ledger.pool)
  const seen: unknown[] = []
  const observed = {
    query: ledger.pool.query.bind(ledger.pool),
    async connect() {
      const client = await ledger.pool.connect()
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult>
      const observe = async (text: string, ...rest: unknown[]) => {
        if (text.includes('insert into outboxd.request'))
          seen.push(...(await query('show idle_in_transaction_session_timeout')).rows)
        return query(text, ...rest)
      }
      return Object.create(client, { query: { value: observe } })
    },
  } as unknown as pg.Pool
  const instance = { id: randomUUID(), who: 'test' }
  const history = historyOf(ledger.pool, instance.id)
  const on = { ledger: observed, queue: ledger.queue, instance, history, requestOverAfterMs: 1, backoff: pauseBackoff }
  const dispatch = new TestDispatch(on, systemClock)
  await dispatch.claimTokenRequest(1)
  expect((await claim(dispatch, { submissions: 1 })).submissions).toHaveLength(1)
  const limited = { idle_in_transaction_session_timeout: '2s' }
  expect(seen).toEqual([limited, limited])
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

test('a record of a lost claim that another instance has made uncertain stays uncertain', async () => {
  const [id = ''] = await ledger.capture([{}])
  const lost = randomUUID()
  const [claimed] = await claimUpTo(1, lost)
  const inDoubt = transition(claimed as Submission, { state: 'uncertain', error: 'died' })
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [inDoubt] }))
  await requeueUnsentClaim(ledger.pool, lost, 'test')
  expect(await ledger.row(id)).toMatchObject({ state: 'uncertain' })
})

test('a claim is not given back while its COMMIT may still take effect', async () => {
  const [id = ''] = await ledger.capture([{}])
  const lost = randomUUID()
  const client = await ledger.pool.connect()
  try {
    await client.query('begin')
    await claimQueuedSubmissions(client, { id: lost, instanceId: randomUUID(), limit: 1, who: 'test' })
    expect(await ledger.dispatch().requeueUnsentClaim(lost, [id])).toBe(false)
    await client.query('commit')
  } finally {
    client.release()
  }
  expect(await ledger.dispatch().requeueUnsentClaim(lost, [id])).toBe(true)
  expect(await ledger.row(id)).toMatchObject({ state: 'queued' })
})
