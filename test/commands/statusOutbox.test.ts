import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { command as status } from '../../src/commands/status.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { runStatus } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { type Fixture, openFixture, payloadOf } from './fixture.ts'

/** What `status` prints while it has to wait for the outbox's database. */

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(async () => {
  await fixture.reset()
  await writeHeartbeat(fixture.ledger.pool, { id: crypto.randomUUID(), version: '1', host: 'erp-1' })
})

/** Opens a session named like an ERP's form, with an open transaction whose last statement is this. @returns its pid */
async function form(statement: string): Promise<number> {
  const session = await fixture.ledger.pool.connect()
  session.on('error', () => {}) // a test may end it
  onTestFinished(() => session.release(true))
  await session.query(`set application_name = 'order form'`)
  const { rows } = await session.query<{ pid: number }>('select pg_backend_pid() as pid')
  await session.query('begin')
  await session.query(statement)
  return rows[0]?.pid ?? 0
}

test('if the outbox table is locked, status names the session', async () => {
  await fixture.row(payloadOf())
  const pid = await form(`/* for 'customer 7' */ alter table outbox add column secret_1234 text`)
  let begunMs = 0
  const { code, context } = await runStatus(() => {
    begunMs = performance.now()
    return fixture.context()
  })
  const printed = context.printed()
  // Status reads the locks twice, 0.3 s apart. The bound allows for a busy machine. Waiting for the lock took 20 s.
  expect(performance.now() - begunMs).toBeLessThan(10_000)
  expect(printed).toMatch(
    new RegExp(
      `^The outbox’s table is locked by pid ${pid} \\(order form, idle in transaction for \\d+ s, last statement: alter table\\)\\. Until that session ends, no row `,
    ),
  )
  expect(printed).toContain(`run \`select pg_terminate_backend(${pid})\` in the ERP’s database.\n`)
  expect(printed).toMatch(/to send +unknown in the outbox, 0 captured\n/)
  expect(printed).not.toContain('secret')
  expect(printed).not.toContain('customer')
  expect(code).toBe(1)

  const json = fixture.context()
  expect(await status.action(json, { json: true })).toBe(1)
  expect(JSON.parse(json.printed())).toMatchObject({
    well: false,
    outboxWaiting: null,
    backlog: null,
    outboxLockedBy: [{ pid, application: 'order form', state: 'idle in transaction', statement: 'alter table' }],
  })
  expect(json.printed()).not.toContain('secret')
})

test('if sessions wait for each other, status names the session that holds the lock, not one that waits', async () => {
  const pid = await form('select from outbox')
  const migration = await fixture.ledger.pool.connect()
  onTestFinished(() => migration.release(true))
  const altering = migration.query('alter table outbox add column more text').catch(() => {})
  const { pool } = fixture.ledger
  await until(
    () => pool.query(`select from pg_locks where not granted and relation = 'outbox'::regclass`),
    ({ rowCount }) => rowCount === 1,
  )
  const { code, context } = await runStatus(() => fixture.context())
  expect(code).toBe(1)
  expect(context.printed()).toContain(`locked by pid ${pid} (order form, idle in transaction`)
  await pool.query('select pg_terminate_backend($1)', [pid])
  await altering
})

test('status ignores a lock that is released at once', async () => {
  await fixture.row(payloadOf())
  const session = await fixture.ledger.pool.connect()
  onTestFinished(() => session.release(true))
  await session.query('begin; lock table outbox')
  const ended = runStatus(() => fixture.context())
  const { pool } = fixture.ledger
  await until(
    () => pool.query(`select from pg_locks where not granted and relation = 'outbox'::regclass`),
    ({ rowCount }) => (rowCount ?? 0) > 0,
  )
  await session.query('rollback')
  const { code, context } = await ended
  expect(code).toBe(0)
  expect(context.printed()).toMatch(/^All is well: 1 record to send\./)
})
