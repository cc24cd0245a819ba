import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countRequestsOfOtherClient, endAnsweredRequests } from '../../src/ledger/budget.ts'
import { requeueUnsentClaim } from '../../src/ledger/claims.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import {
  countReplaysAndDiscardsOnce,
  mergeStateCountDeltas,
  readBudgetUse,
  readLedgerSnapshot,
  readProcessingTimes,
} from '../../src/ledger/snapshot.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { claim, claimRequests, openLedgerForFile, outcomeBatch, setLimit, transition } from '../support/ledger.ts'

const ledger = openLedgerForFile()

async function counted(): Promise<Record<string, number>> {
  const { submissions } = await readLedgerSnapshot(ledger.pool)
  return Object.fromEntries(Object.entries(submissions).filter(([, count]) => count !== 0))
}

test('after any steps, merged or not, the counts by state equal those of the table', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('capture' as const), good: fc.nat(4), bad: fc.nat(2) }),
    fc.record({ kind: fc.constant('claim' as const), most: fc.integer({ min: 1, max: 4 }) }),
    fc.record({
      kind: fc.constant('answer' as const),
      state: fc.constantFrom('accepted', 'completed', 'failed', 'rejected', 'uncertain', 'queued'),
    }),
    fc.record({ kind: fc.constant('requeueUnsentClaim' as const) }),
    fc.record({ kind: fc.constant('compact' as const) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      await ledger.reset()
      await setLimit(ledger.pool)
      const work = ledger.dispatch()
      const claims: string[] = []
      const inHand: Awaited<ReturnType<typeof claim>>['submissions'] = []
      for (const each of steps) {
        switch (each.kind) {
          case 'capture':
            await ledger.capture([
              ...Array.from({ length: each.good }, () => ({})),
              ...Array.from({ length: each.bad }, () => ({ error: 'no', body: null })),
            ])
            break
          case 'claim': {
            const id = randomUUID()
            claims.push(id)
            const { submissions } = await work.claim({ id, submissions: each.most, polls: 0, rarePolls: 0 }, () => {})
            inHand.push(...submissions)
            break
          }
          case 'answer': {
            const change = { state: each.state, transactionId: 'tx' } as const
            const transitions = inHand.splice(0, 2).map((submission) =>
              transition(submission, {
                ...change,
                ...(each.state === 'accepted' ? { pollInMs: 0 } : {}),
                ...(each.state === 'queued' ? { dueInMs: 0 } : {}),
              }),
            )
            await work.writeOutcomes(outcomeBatch({ transitions }))
            break
          }
          case 'requeueUnsentClaim':
            for (const id of claims.splice(0, 1)) await requeueUnsentClaim(ledger.pool, id, 'test')
            break
          case 'compact':
            await compact()
        }
        expect(await counted()).toEqual(await ledger.countStates())
      }
    }),
    { numRuns: 15 },
  )
})

async function compact(): Promise<void> {
  await ledger.pool.query(
    `insert into outboxd.state_delta (state, delta) select 'queued', s from unnest(array[1, -1]) s, generate_series(1, 300)`,
  )
  await mergeStateCountDeltas(ledger.pool)
}

test('many deltas of a count are merged into one', async () => {
  await ledger.capture([{}, {}])
  await mergeStateCountDeltas(ledger.pool)
  await compact()
  const { rows } = await ledger.pool.query('select state, delta::int from outboxd.state_delta')
  expect(rows).toEqual([{ state: 'queued', delta: 2 }])
})

test('merging deltas loses no count while other sessions count and merge', async () => {
  await ledger.pool.query(
    `insert into outboxd.state_delta (state, delta) select 'failed', 1 from generate_series(1, 600)`,
  )
  await Promise.all([
    ...Array.from({ length: 5 }, () => mergeStateCountDeltas(ledger.pool)),
    ...Array.from({ length: 10 }, () => ledger.capture([{}])),
  ])
  expect(await counted()).toEqual({ failed: 600, queued: 10 })
})

test('the oldest unsent record is queued or being sent, and is dated from its outbox row', async () => {
  await setLimit(ledger.pool)
  expect(await readLedgerSnapshot(ledger.pool)).toMatchObject({ oldestUnsentMs: null, oldestAcceptedMs: null })
  await ledger.capture([{ createdAt: '2026-01-01T00:00:00Z' }])
  await ledger.capture([{ createdAt: '2026-01-02T00:00:00Z' }])
  const work = ledger.dispatch()
  const { submissions } = await claim(work, { submissions: 1 })
  expect((await readLedgerSnapshot(ledger.pool)).oldestUnsentMs).toBe(Date.parse('2026-01-01T00:00:00Z'))
  const accepted = { state: 'accepted', transactionId: 'tx', pollInMs: 1_000 } as const
  await work.writeOutcomes(outcomeBatch({ transitions: submissions.map((each) => transition(each, accepted)) }))
  const { nowMs, oldestUnsentMs, oldestAcceptedMs } = await readLedgerSnapshot(ledger.pool)
  expect(oldestUnsentMs).toBe(Date.parse('2026-01-02T00:00:00Z'))
  expect(nowMs - (oldestAcceptedMs ?? 0)).toBeGreaterThan(0) // both of the one clock
  expect(nowMs - (oldestAcceptedMs ?? 0)).toBeLessThan(60_000)
})

test('a record whose id is asked for counts as at the service since it was sent, and not as unsent', async () => {
  await setLimit(ledger.pool)
  await ledger.capture([{ createdAt: '2026-01-01T00:00:00Z' }])
  const work = ledger.dispatch()
  const { submissions } = await claim(work, { submissions: 1 })
  expect((await readLedgerSnapshot(ledger.pool)).probing).toBe(0)
  const asked = { state: 'sending', transactionId: 'tx', pollInMs: 1_000 } as const
  await work.writeOutcomes(outcomeBatch({ transitions: submissions.map((each) => transition(each, asked)) }))
  const { rows } = await ledger.pool.query(
    'select extract(epoch from sent_at)::float8 * 1000 as ms from outboxd.submission',
  )
  expect(await readLedgerSnapshot(ledger.pool)).toMatchObject({
    probing: 1,
    oldestUnsentMs: null,
    oldestAcceptedMs: rows[0].ms,
  })
})

test('the snapshot has the limit and how much of it is free', async () => {
  await setLimit(ledger.pool, 6_000)
  await claimRequests(ledger.pool, 24)
  expect(await readLedgerSnapshot(ledger.pool)).toMatchObject({ rateCapacity: 6_000, rateAvailable: 5_976, pauses: [] })
})

test('the budget shows what is held back for another client, and nothing else that counts as spent', async () => {
  const { pool } = ledger
  const instanceId = randomUUID()
  const heldBack = async () => (await readLedgerSnapshot(pool)).rateHeldBack
  await setLimit(pool, 700)
  await endAnsweredRequests(pool, instanceId, await claimRequests(pool, 200, { instanceId }))
  await claimRequests(pool, 200)
  expect(await heldBack()).toBe(0)
  const said = { remaining: 100, sinceRequestMs: 0 }
  expect(await inTransaction(pool, (db) => countRequestsOfOtherClient(db, instanceId, said))).toBe(200)
  expect(await heldBack()).toBe(200)
  await pool.query(`update outboxd.request set over_at = over_at - interval '1 hour'`)
  expect(await heldBack()).toBe(0)
})

test('the use of the budget has the purposes of the requests that count', async () => {
  const { pool } = ledger
  expect(await readBudgetUse(pool)).toMatchObject({ limit: 0, free: 0, nextFreeMs: null })
  await setLimit(pool, 5)
  await pool.query(
    `insert into outboxd.request (instance_id, purpose, over_at)
     select gen_random_uuid(), purpose, clock_timestamp() + ends * interval '1 s' from (values
       ('submission', 20), ('submission', -5), ('poll', -10), ('token', -1), ('other_client', -30), ('question', -70)
     ) r(purpose, ends)`,
  )
  const { nextFreeMs, ...use } = await readBudgetUse(pool)
  expect(use).toEqual({
    ...{ limit: 5, windowMs: 60_000, free: 0 },
    ...{ submissions: 2, polls: 1, tokens: 1, questions: 0, ofOtherClients: 1, underWay: 1 },
  })
  expect(nextFreeMs).toBeGreaterThan(10_000)
  expect(nextFreeMs).toBeLessThanOrEqual(30_000)
})

test('the snapshot has reason, beginning, end and detail of a pause', async () => {
  await ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'maintenance')`)
  const { pauses } = await readLedgerSnapshot(ledger.pool)
  expect(pauses).toEqual([{ reason: 'operator', detail: 'maintenance', sinceMs: expect.any(Number), untilMs: null }])
})

test('the snapshot dates the failed or rejected record that has waited longest for an operator', async () => {
  expect((await readLedgerSnapshot(ledger.pool)).oldestForPersonMs).toBeNull()
  const [first] = await ledger.capture([{ error: 'no', body: null }, { error: 'no', body: null }, {}])
  await ledger.pool.query(`update outboxd.submission set ended_at = '2026-01-01T00:00:00Z' where id = $1`, [first])
  expect((await readLedgerSnapshot(ledger.pool)).oldestForPersonMs).toBe(Date.parse('2026-01-01T00:00:00Z'))
})

test('due reports are counted, even those put off, with the time of the oldest', async () => {
  await setLimit(ledger.pool)
  expect(await readLedgerSnapshot(ledger.pool)).toMatchObject({ reportsDue: 0, oldestReportDueMs: null })
  const [, later] = await ledger.capture([{}, {}, {}])
  const { pool } = ledger
  await pool.query('update outboxd.submission set report_due = true')
  await pool.query('update outboxd.submission set report_put_off = revision where id = $1', [later])
  await pool.query(
    'update outboxd.submission set report_due = false where seq = (select max(seq) from outboxd.submission)',
  )
  const { reportsDue, oldestReportDueMs } = await readLedgerSnapshot(pool)
  expect(reportsDue).toBe(2)
  const { rows } = await pool.query('select min(at) as at from outboxd.submission_event')
  expect(oldestReportDueMs).toBeCloseTo(rows[0].at.getTime(), -1)
})

test('replays and discards are counted by the first living instance only, and by the next one if that is dead', async () => {
  const [first, second] = [randomUUID(), randomUUID()]
  for (const id of [first, second]) await writeHeartbeat(ledger.pool, { id, version: '1', host: 'h', settings: {} })
  const [given, sent] = await ledger.capture([{ type: 'order' }, {}])
  const acts = () => Promise.all([first, second].map((id) => countReplaysAndDiscardsOnce(ledger.pool, '0', id)))
  await ledger.pool.query(
    `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who)
     values ($1, 'failed', 'discarded', 1, 'discarded', 'operator', 'me'), ($2, 'failed', 'queued', 1, 'replayed', 'operator', 'me')`,
    [given, sent],
  )
  const [ofFirst, ofSecond] = await acts()
  expect(ofFirst).toMatchObject({ replays: 1, discards: ['order'] })
  expect(Number(ofFirst?.lastId)).toBeGreaterThan(0)
  expect(ofSecond).toEqual({ replays: 0, discards: [], lastId: '0' })
  expect(await countReplaysAndDiscardsOnce(ledger.pool, ofFirst?.lastId ?? '', first)).toMatchObject({
    replays: 0,
    discards: [],
  })

  await ledger.pool.query(
    `update outboxd.instance set beat_at = clock_timestamp() - interval '1 minute' where id = $1`,
    [first],
  )
  expect((await acts())[1]).toMatchObject({ replays: 1, discards: ['order'] })
})

test('the last 300 processing times of each resource are read, the newest last, as the middle of what polls saw', async () => {
  await ledger.capture([{ resource: 'orders' }, ...Array.from({ length: 305 }, () => ({}))])
  await ledger.pool.query(
    `update outboxd.submission set state = 'completed', due_at = null, ended_at = now() + seq * interval '1 s',
       not_done_ms = case when resource = 'orders' then 1000 end, done_ms = 1000 * (seq - (select min(seq) from outboxd.submission) + 2)`,
  )
  const times = await readProcessingTimes(ledger.pool)
  expect(times).toHaveLength(301)
  expect(times[0]).toEqual({ resource: 'orders', ms: 1_500 })
  expect(times[1]).toEqual({ resource: 'data', ms: 4_000 })
  expect(times.at(-1)).toEqual({ resource: 'data', ms: 153_500 })
})
