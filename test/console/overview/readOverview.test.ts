import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { openDatabasesOf } from '../../../src/commands/terminal/operator.ts'
import { readDatabaseConfig } from '../../../src/config.ts'
import { createLastKnownOutboxStatusReader, createOverviewReader } from '../../../src/console/overview/readOverview.ts'
import type { Databases } from '../../../src/operations/databases.ts'
import type { OutboxStatus } from '../../../src/operations/readStatus.ts'
import { failedE003, openFixture } from '../../commands/fixture.ts'

/** A clock that stands still until the test moves it. */
function stoppedClock() {
  const clock = {
    elapsedMs: 0,
    nowMs: systemClock.nowMs,
    stopwatch() {
      const beganMs = clock.elapsedMs
      return () => clock.elapsedMs - beganMs
    },
  }
  return clock
}

test('the page does not wait for a slow outbox: it says so, and shows the answer once it comes', async () => {
  const answer = Promise.withResolvers<OutboxStatus>()
  const clock = stoppedClock()
  let asked = 0
  const read = createLastKnownOutboxStatusReader({ databases: async () => ({}) as Databases, clock }, () => {
    asked += 1
    return answer.promise
  })
  expect(await read()).toEqual({ kind: 'awaited' })
  expect(await read()).toEqual({ kind: 'awaited' })
  expect(asked).toBe(1)
  const readOutbox: OutboxStatus = {
    kind: 'read',
    outbox: { waiting: 3, oldestMs: null } as never,
    rowsBeforeStart: null,
    differences: '',
  }
  clock.elapsedMs = 500
  answer.resolve(readOutbox)
  expect(await read()).toEqual(readOutbox)
  // The read took half a second, so the next one comes after forty times as long.
  clock.elapsedMs = 20_400
  await read()
  expect(asked).toBe(1)
  clock.elapsedMs = 20_600
  await read()
  expect(asked).toBe(2)
})

test('the next view after a daemon fell silent says so, whatever was read before', async () => {
  await using fixture = await openFixture()
  await fixture.reset()
  const { pool } = fixture.ledger
  const config = readDatabaseConfig(fixture.context().env)
  await using databases = await openDatabasesOf(config)
  const read = createOverviewReader({ databases: async () => databases, clock: stoppedClock() })
  await pool.query(
    `insert into outboxd.instance (id, version, host, beat_at)
     values (gen_random_uuid(), '1.0', 'erp-1', clock_timestamp() + interval '1 min')`,
  )
  expect((await read()).report.instances).toMatchObject([{ host: 'erp-1' }])
  await pool.query(`update outboxd.instance set beat_at = clock_timestamp() - interval '5001 ms'`)
  const { report } = await read()
  expect(report.instances).toEqual([])
  expect(report.diagnoses[0].message).toContain('No daemon is running')
})

test('who locks the outbox is asked anew each time it is shown', async () => {
  await using fixture = await openFixture()
  await fixture.reset()
  await using databases = await openDatabasesOf(readDatabaseConfig(fixture.context().env))
  const read = createLastKnownOutboxStatusReader({ databases: async () => databases, clock: stoppedClock() })
  const session = await fixture.ledger.pool.connect()
  await session.query('begin; lock table outbox')
  const { rows } = await session.query('select pg_backend_pid() as pid')
  expect(await read()).toMatchObject({ kind: 'locked', by: [{ pid: rows[0].pid }] })
  await session.query('rollback')
  session.release()
  expect(await read()).toEqual({ kind: 'awaited' })
})

test('the page costs between 2 and 4 statements a second', async () => {
  await using fixture = await openFixture()
  await fixture.reset()
  await fixture.end(failedE003)
  const config = readDatabaseConfig(fixture.context().env)
  const clock = stoppedClock()
  // A new connection takes its `query` from this prototype.
  const asked = vi.spyOn(pg.Query.prototype, 'submit')
  await using databases = await openDatabasesOf(config)
  const read = createOverviewReader({ databases: async () => databases, clock })
  await read()
  asked.mockClear()
  for (const _ of Array(60)) {
    clock.elapsedMs += 1_000
    await read()
  }
  const perSecond = asked.mock.calls.length / 60
  asked.mockRestore()
  expect(perSecond).toBeLessThan(4)
  expect(perSecond).toBeGreaterThan(2)
})
