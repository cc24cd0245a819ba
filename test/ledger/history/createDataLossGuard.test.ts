import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest'
import { withCaptureLock } from '../../../src/ledger/capture.ts'
import { createDataLossGuard } from '../../../src/ledger/history/createDataLossGuard.ts'
import { readSuspectedLoss } from '../../../src/ledger/history/history.ts'
import type { LedgerStandby, RowSearchResult } from '../../../src/ledger/history/judgeDataLoss.ts'
import { finishRecovery } from '../../../src/ledger/operator/recover.ts'
import { pruneOldSubmissions } from '../../../src/ledger/retention.ts'
import { inTransaction } from '../../../src/postgres/database.ts'
import {
  claimRequests,
  countFree,
  type Ledger,
  noNamedRows,
  openLedger,
  outcomeBatch,
  setLimit,
  transition,
} from '../../support/ledger.ts'
import { createDatabaseOn, dropDatabase, openPool } from '../../support/postgres.ts'
import { record } from '../../support/record.ts'
import { testActor } from '../../support/testActor.ts'
import { until } from '../../support/until.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(async () => {
  await ledger.reset()
  await setLimit(ledger.pool, 10)
  await ledger.pool.query(`update outboxd.history set marked_at = '-infinity'`)
})

const historyOf = (pool: pg.Pool = ledger.pool, standby: LedgerStandby = 'none') =>
  createDataLossGuard({ pool, who: 'daemon 1', requestOverAfterMs: 1_000, standby, rowSearch: noNamedRows })
const request = () => ({ id: randomUUID(), submissions: 5, polls: 0, rarePolls: 0, trial: false })
/** A record that the service accepted, and whose poll is due. */
async function acceptRecord() {
  const [id = ''] = await ledger.capture([{}])
  const dispatch = ledger.dispatch()
  const [sent] = (await dispatch.claim({ ...request(), submissions: 1 }, () => {})).submissions
  if (sent === undefined) throw new Error('nothing was claimed')
  const accepted = { state: 'accepted', transactionId: 'tx', pollInMs: 0 } as const
  await dispatch.writeOutcomes(outcomeBatch({ transitions: [transition(sent, accepted)] }))
  return { id, dispatch }
}

const operator = () => ({ ledger: ledger.pool, keyOnFailure: 'continue' as const, actor: testActor })

/** Recovers from a loss that was found. */
async function recoverAs(queuedBecome: 'uncertain' | 'new'): Promise<void> {
  await ledger.pool.query(`update outboxd.history set found_at = now(), found = 'x', found_by = 'y'`)
  const seenAtMs = (await readSuspectedLoss(ledger.pool))?.atMs ?? 0
  const alreadyDecided = { arrived: 0, uncertain: 0, rows: 0 }
  const terms = { queuedBecome, seenAtMs, isOutboxInDoubt: false, alreadyDecided }
  await finishRecovery(operator(), terms)
}
const pauses = async () => (await ledger.pool.query('select reason, until from outboxd.pause')).rows

test('a used ledger that was copied to a different database is a suspected loss', async () => {
  const server = inject('postgresUrl')
  const url = await createDatabaseOn(server, `copy_${randomUUID().slice(0, 8)}`, 'template outboxd_template')
  onTestFinished(() => dropDatabase(url, server))
  const pool = openPool(url)
  onTestFinished(() => pool.end())
  const look = () => historyOf(pool).check()
  expect([await look(), await look()]).toEqual([{ kind: 'waits' }, { kind: 'stands' }])

  await pool.query('update outboxd.history set database_oid = 1')
  await setLimit(pool, 10)
  await claimRequests(pool, 1)
  expect(await look()).toMatchObject({
    kind: 'found',
    detail: expect.stringContaining('different database of the cluster'),
  })
})

test('a check that finds no loss is stored every ten seconds, not each time', async () => {
  const marks = async () => (await ledger.pool.query('select marked_at from outboxd.history')).rows
  const { check: look } = historyOf()
  await look()
  const first = await marks()
  await look()
  expect(await marks()).toEqual(first)
  await ledger.pool.query(`update outboxd.history set marked_at = clock_timestamp() - interval '11 s'`)
  const due = await marks()
  await look()
  expect(await marks()).not.toEqual(due)
})

test('restored older rows are found by the missing event, though the history is the same; pruned events are not missed', async () => {
  await ledger.capture([{}])
  expect(await historyOf().check()).toEqual({ kind: 'stands' })
  const without = (statement: string) =>
    ledger.pool.query(`begin; set local session_replication_role = replica; ${statement}; commit`)
  await ledger.pool.query(`update outboxd.history set marked_at = '-infinity'`)
  await ledger.capture([{}])
  await historyOf().check()
  await without(`delete from outboxd.submission_event where id = (select max(id) from outboxd.submission_event)`)
  expect(await historyOf().check()).toMatchObject({
    kind: 'found',
    detail: expect.stringContaining('rows of a backup'),
  })

  await ledger.reset()
  const [id] = await ledger.capture([{}])
  await ledger.pool.query(`update outboxd.history set marked_at = '-infinity'`)
  await historyOf().check()
  await without(
    `update outboxd.submission set state = 'discarded', due_at = null, ended_at = now() - interval '9 days', report_due = false where id = '${id}'`,
  )
  expect(await inTransaction(ledger.pool, (db) => pruneOldSubmissions(db, { olderThanDays: 1, limit: 10 }))).toBe(1)
  expect(await historyOf().check()).toEqual({ kind: 'stands' })
})

test('VACUUM or CLUSTER of the history table is no suspected loss', async () => {
  for (const statement of ['vacuum freeze', 'vacuum full', 'vacuum (full, freeze)'])
    await ledger.pool.query(`${statement} outboxd.history`)
  await ledger.pool.query('cluster outboxd.history using history_pkey')
  expect(await historyOf().check()).toEqual({ kind: 'stands' })
})

test('rows of a backup in the existing tables are a suspected loss until an operator recovers', async () => {
  const history = historyOf()
  expect(await history.check()).toEqual({ kind: 'stands' })
  await ledger.pool.query(
    'with before as (delete from outboxd.history returning *) insert into outboxd.history select * from before',
  )
  expect(await history.check()).toMatchObject({
    kind: 'found',
    detail: expect.stringContaining('rows of a backup'),
  })
  const found = await readSuspectedLoss(ledger.pool)
  const alreadyDecided = { arrived: 0, uncertain: 0, rows: 0 }
  const terms = { queuedBecome: 'new', seenAtMs: found?.atMs ?? 0, isOutboxInDoubt: false, alreadyDecided } as const
  await finishRecovery(operator(), terms)
  expect(await historyOf().check()).toEqual({ kind: 'stands' })
})

test('in a different history nothing is claimed, even before a check, and the whole budget counts as spent', async () => {
  await ledger.capture([{}])
  await ledger.pool.query(`update outboxd.history set ledger_oid = 1`)
  const claimed = await ledger.dispatch().claim(request(), () => {})
  expect(claimed).toMatchObject({ submissions: [] })
  expect(await ledger.dispatch().claimTokenRequest(1)).toBeNull()
  expect(await historyOf().check()).toMatchObject({ kind: 'found' })
  expect(await pauses()).toEqual([{ reason: 'history', until: null }])
  expect(await countFree(ledger.pool)).toBe(0)
})

test('after a suspected loss no request is free before the longest request timeout and the window have passed', async () => {
  await ledger.pool.query(
    `insert into outboxd.instance_setting (instance_id, host, requests, window_ms, request_timeout_ms, key_on_failure)
     values (gen_random_uuid(), 'host', 10, 60000, 120000, 'continue');
     update outboxd.history set timeline = timeline + 5`,
  )
  expect(await historyOf().check()).toMatchObject({ kind: 'found' })
  const { rows } = await ledger.pool.query<{ freeInMs: number }>(
    `select extract(epoch from next_free_at - clock_timestamp())::float8 * 1000 as "freeInMs" from outboxd.budget`,
  )
  expect(rows[0]?.freeInMs).toBeGreaterThan(120_000 + 60_000)
})

test('a suspected loss is found once, and recovery applies only to the loss that the operator saw', async () => {
  const [id] = await ledger.capture([{}])
  const history = historyOf()
  expect(await history.check()).toEqual({ kind: 'stands' })
  await ledger.pool.query(`update outboxd.history set timeline = timeline + 5`)
  expect(await history.check()).toMatchObject({ kind: 'found' })
  const found = await readSuspectedLoss(ledger.pool)
  expect(await history.check()).toEqual({ kind: 'waits' })
  expect(await historyOf().check()).toEqual({ kind: 'waits' })
  expect(await readSuspectedLoss(ledger.pool)).toEqual(found)
  const agreeTo = (seenAtMs: number) =>
    finishRecovery(operator(), {
      queuedBecome: 'uncertain',
      seenAtMs,
      isOutboxInDoubt: true,
      alreadyDecided: { arrived: 0, uncertain: 0, rows: 0 },
    })
  expect(await agreeTo((found?.atMs ?? 0) - 10)).toBeNull()
  expect(await agreeTo(found?.atMs ?? 0)).toBe(1)
  expect(await pauses()).toEqual([])
  expect(await history.check()).toEqual({ kind: 'stands' })
  expect(await ledger.read(id as string)).toMatchObject({ state: 'uncertain' })
  expect(await ledger.events(id as string)).toContain('queued -> uncertain: recovered as uncertain')
})

test('after a recovery, rows that were recorded before it are captured as uncertain, later rows as queued', async () => {
  await ledger.pool.query(`update outboxd.history set doubtful_before = '2026-11-01T00:00:00Z'`)
  const [before, after] = await ledger.capture([
    { createdAt: '2026-10-31T23:59:59Z' },
    { createdAt: '2026-11-01T00:00:01Z' },
  ])
  expect((await ledger.read(before as string)).state).toBe('uncertain')
  expect(await ledger.row(before as string)).toMatchObject({ report_due: true, in_doubt: true })
  expect((await ledger.read(after as string)).state).toBe('queued')
})

test('a record that recovery queues as new keeps its idempotency key and gets an attempt in doubt', async () => {
  const [id] = await ledger.capture([{}])
  await ledger.pool.query(`update outboxd.history set found_at = now(), found = 'x', found_by = 'y'`)
  const key = (await ledger.row(id as string)).idempotency_key
  const seenAtMs = (await readSuspectedLoss(ledger.pool))?.atMs ?? 0
  await finishRecovery(operator(), {
    queuedBecome: 'new',
    seenAtMs,
    isOutboxInDoubt: true,
    alreadyDecided: { arrived: 0, uncertain: 0, rows: 0 },
  })
  expect(await ledger.row(id as string)).toMatchObject({ state: 'queued', in_doubt: true, idempotency_key: key })
})

test('the answer to a poll that was under way during a recovery does not send a record again', async () => {
  const { id, dispatch } = await acceptRecord()
  const [poll] = (await dispatch.claim({ ...request(), polls: 1 }, () => {})).polls
  if (poll === undefined) throw new Error('no poll was claimed')
  await recoverAs('new')
  const again = { state: 'queued', transactionId: null, dueInMs: 0 } as const
  await dispatch.writeOutcomes(outcomeBatch({ transitions: [transition(poll.submission, again, poll.poll)] }))
  expect(await ledger.row(id as string)).toMatchObject({ state: 'accepted', in_doubt: true, resubmissions: 3 })
})

test('recovery makes a record whose id is asked for uncertain, so that no 404 sends it again', async () => {
  const [id] = await ledger.capture([{}])
  const dispatch = ledger.dispatch()
  const [sent] = (await dispatch.claim({ ...request(), submissions: 1 }, () => {})).submissions
  if (sent === undefined) throw new Error('nothing was claimed')
  const asked = { state: 'sending', transactionId: 'in Location', pollInMs: 0, polledRarely: false } as const
  await dispatch.writeOutcomes(
    outcomeBatch({ transitions: [transition(sent, { ...asked, unknown: false, inDoubt: true })] }),
  )
  await recoverAs('uncertain')
  expect(await ledger.row(id as string)).toMatchObject({ state: 'uncertain', probing: false, report_due: true })
  expect(await ledger.events(id as string)).toContain('sending -> uncertain: recovered as uncertain')
})

test('a record that a poll’s answer queues while recovery runs becomes uncertain', async () => {
  const { id } = await acceptRecord()
  const answer = await ledger.pool.connect()
  onTestFinished(() => answer.release())
  await answer.query('begin')
  await answer.query('select from outboxd.submission where id = $1 for update', [id])
  const recovered = recoverAs('uncertain')
  await until(
    () =>
      ledger.pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`),
    ({ rowCount }) => rowCount !== 0,
  )
  await answer.query(
    `update outboxd.submission set state = 'queued', revision = revision + 1, due_at = now(),
       transaction_id = null, accepted_at = null where id = $1`,
    [id],
  )
  await answer.query('commit')
  await recovered
  expect(await ledger.row(id as string)).toMatchObject({ state: 'uncertain' })
})

test('a daemon that misses its own last claim claims nothing, even before a check finds the loss', async () => {
  const history = historyOf()
  const dispatch = ledger.dispatch({ history })
  await ledger.capture([{}, {}])
  expect((await dispatch.claim({ ...request(), submissions: 1 }, () => {})).submissions).toHaveLength(1)
  await history.check()
  await ledger.pool.query(
    `update outboxd.submission set state = 'queued', due_at = now(), attempt = 0, claim_id = null, instance_id = null where state = 'sending'`,
  )
  expect((await dispatch.claim(request(), () => {})).submissions).toEqual([])
  expect(await history.check()).toMatchObject({ kind: 'found' })
})

test('an empty ledger captures no row until it is known that none names a transaction; one with records does not ask', async () => {
  await ledger.pool.query(`update outboxd.history set agreed_actor = 'daemon', agreed_by = 'daemon 1'`) // not an operator, who would have looked
  let found: RowSearchResult = { kind: 'named', outboxId: '2' }
  const rowSearch = { find: noNamedRows.find, findNow: async () => found }
  const history = createDataLossGuard({
    pool: ledger.pool,
    who: 'daemon 1',
    requestOverAfterMs: 1_000,
    standby: 'none',
    rowSearch,
  })
  const instance = { id: 'daemon', who: 'daemon 1' }
  const capturing = { instance, keyOnFailure: 'continue' as const, history, sessions: async () => ledger.pool }
  const capture = () =>
    withCaptureLock(capturing, async ({ isHistoryComplete: hasHistory, insert }) => ({
      hasHistory,
      inserted: await insert([record()]),
    }))
  for (found of [found, { kind: 'unknown' }] satisfies RowSearchResult[])
    expect(await capture()).toEqual({ hasHistory: true, inserted: null })
  expect(await ledger.countStates()).toEqual({})

  const taken = { hasHistory: true, inserted: { leftOutIds: new Set(), discarded: new Map() } }
  found = { kind: 'none' }
  expect(await capture()).toEqual(taken)
  found = { kind: 'named', outboxId: '2' }
  expect(await capture()).toEqual(taken)
  expect(await ledger.countStates()).toEqual({ queued: 2 })
})

test('daemons accept a promoted standby only if it is declared synchronous and was checked two minutes ago at most', async () => {
  const promote = () => ledger.pool.query('update outboxd.history set timeline = timeline - 1, marked_at = now()')
  const declared = historyOf(ledger.pool, 'synchronous')
  await promote()
  expect(await declared.check()).toEqual({ kind: 'went-on' })
  expect(await declared.check()).toEqual({ kind: 'stands' })
  await ledger.pool.query(`update outboxd.history set timeline = timeline - 1, marked_at = now() - interval '3 min'`)
  expect(await declared.check()).toMatchObject({ kind: 'found', detail: expect.stringContaining('a backup may') })

  await ledger.reset()
  await promote()
  expect(await historyOf().check()).toMatchObject({ kind: 'found' })
})

test('with LEDGER_STANDBY=synchronous nothing is claimed while COMMITs do not wait, and a problem says so', async () => {
  await ledger.capture([{}])
  const history = historyOf(ledger.pool, 'synchronous')
  const problems = async () => (await ledger.pool.query('select kind, subject from outboxd.problem')).rows
  expect(await history.check()).toEqual({ kind: 'stands' })
  expect(await problems()).toEqual([{ kind: 'ledger_history', subject: 'standby' }])
  expect((await ledger.dispatch({ history }).claim(request(), () => {})).submissions).toEqual([])
  await ledger.pool.query(`update outboxd.problem set detail = 'told once'`)
  await history.check()
  expect(await problems()).toHaveLength(1)

  await historyOf().check()
  expect(await problems()).toEqual([])
  expect((await ledger.dispatch().claim(request(), () => {})).submissions).toHaveLength(1)
})
