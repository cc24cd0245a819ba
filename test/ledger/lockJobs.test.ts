import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { command as discard } from '../../src/commands/discard.ts'
import { readPlannedPolls, reschedulePolls } from '../../src/ledger/queue.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { type Fixture, openFixture } from '../commands/fixture.ts'
import { until } from '../support/until.ts'

/** Jobs are locked before submissions, so that concurrent writes go on and no session is ended by a deadlock. */

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

const accepted = (transactionId: string) =>
  fixture.end({ state: 'accepted', transactionId, pollInMs: 50_000 }, { outboxId: transactionId })

/** Writes an outcome as the daemon does, up to where it waits for a record. */
async function beginOutcome(id: string) {
  const outcome = await fixture.ledger.pool.connect()
  onTestFinished(() => outcome.release())
  await outcome.query(`begin; set local lock_timeout = '10s'`)
  await outcome.query(
    'select from outboxd_jobs.job where id = (select job_id from outboxd.submission where id = $1) for update',
    [id],
  )
  return outcome
}

const somebodyWaits = () =>
  until(
    () =>
      fixture.ledger.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      ),
    ({ rowCount }) => rowCount !== 0,
  )

test('an outcome and a discard of the same record do not deadlock', async () => {
  const id = await accepted('one')
  const outcome = await beginOutcome(id)
  const context = fixture.context()
  const given = discard.action(context, [id], { reason: 'test', yes: true })
  await somebodyWaits()
  await outcome.query('update outboxd.submission set polls = polls + 1 where id = $1', [id])
  await outcome.query('commit')
  expect(await given).toBe(0)
  expect((await fixture.ledger.read(id)).state).toBe('discarded')
  expect(await fixture.ledger.liveJobs()).toEqual([])
})

test('moving polls skips a poll whose outcome is being written, and does not wait for it', async () => {
  const ids = [await accepted('one'), await accepted('two')]
  const { pool, queue } = fixture.ledger
  const moves = (await readPlannedPolls(pool, 10)).map(({ submissionId, jobId }) => ({
    submissionId,
    jobId,
    inMs: 5_000,
  }))
  expect(moves).toHaveLength(2)
  const outcome = await beginOutcome(ids[0] ?? '')
  await inTransaction(pool, async (db) => {
    await reschedulePolls(db, queue, moves)
    // While the polls are being moved, the outcome goes on.
    await outcome.query('update outboxd.submission set polls = polls + 1 where id = $1', [ids[0]])
  })
  await outcome.query('commit')
  const { rows } = await pool.query<{ near: boolean; job: boolean }>(
    `select poll_at < now() + interval '10 s' as near, j.start_after < now() + interval '10 s' as job
     from outboxd.submission s join outboxd_jobs.job j on j.id = s.job_id order by seq`,
  )
  expect(rows).toEqual([
    { near: false, job: false },
    { near: true, job: true },
  ])
})
