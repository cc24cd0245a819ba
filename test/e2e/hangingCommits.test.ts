import type pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { type Setup, setup as startSandbox } from '../sandbox/setup.ts'
import { testContext } from '../support/context.ts'
import { type Ledger, openLedger, setLimit } from '../support/ledger.ts'
import { type EmbeddedPostgres, migrateAll, openPool, startPostgres } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { waitForStandby } from '../support/waitForStandby.ts'

/** The ledger's server waits for a synchronous standby that is away, so no COMMIT gets an answer. */

let server: EmbeddedPostgres
let service: Setup
let ledger: Ledger
/** A session whose own COMMITs do not wait. */
let operator: pg.Pool
beforeAll(async () => {
  server = await startPostgres({ fsync: 'off' })
  service = await startSandbox()
  await migrateAll(server.url)
  ledger = await openLedger(server.url)
  await setLimit(ledger.pool)
  operator = openPool(server.url, { max: 1, options: '-c synchronous_commit=local' })
})
afterAll(async () => {
  await operator.end()
  await ledger[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
  await server.stop()
})

const setStandby = (names: string) =>
  waitForStandby(
    names,
    (text) => operator.query(text),
    (text) => ledger.pool.query(text),
  )

const hanging = async (sessionName: string) =>
  (
    await operator.query<{ pid: number }>(
      `select pid from pg_stat_activity where wait_event = 'SyncRep' and application_name = $1`,
      [sessionName],
    )
  ).rows.map(({ pid }) => pid)

/** Commits until a COMMIT hangs, because the checkpointer hears of the new setting later than sessions. */
async function loseStandby(sessionName: string): Promise<void> {
  const daemon = openPool(server.url, { max: 1, application_name: sessionName })
  onTestFinished(async () => {
    await setStandby('')
    await daemon.end()
  })
  await setStandby('gone')
  let committed = Promise.resolve<unknown>(null)
  let isOver = true
  await until(
    async () => {
      if (isOver) {
        isOver = false
        committed = daemon.query(`select pg_logical_emit_message(true, 'test', '')`).finally(() => {
          isOver = true
        })
      }
      return hanging(sessionName)
    },
    ({ length }) => length > 0,
  )
  onTestFinished(async () => {
    await setStandby('')
    await committed
  })
}

const env = () => ({ DATABASE_URL: server.url, ...serviceEnvironment(service.sandbox.url) })

async function runCheck() {
  const context = testContext(env())
  return { code: await check.action(context, {}), printed: context.printed() }
}

test('a daemon’s COMMIT waits for a standby: `status` says so first, and `check` says so without writing', async () => {
  await loseStandby('outboxd')
  const printed = await until(
    () => statusSays(env()),
    (said) => said.startsWith('COMMITs in the database wait for a synchronous standby, so nothing is sent. '),
  )
  expect(printed.split('\n')[0]).toContain('Do not restart a daemon')
  const { code, printed: found } = await runCheck()
  expect(code).toBe(1)
  expect(found).toMatch(/^PROBLEM {2}ledger: COMMITs .* wait for a synchronous standby, so nothing is sent/m)
  expect(found).toMatch(/^PROBLEM {2}service: COMMITs .* wait for a synchronous standby, so nothing is sent/m)
  expect(await hanging('outboxd check')).toEqual([])
})

test('no session waits yet: `check` ends the wait of its own COMMIT, and leaves no session behind', async () => {
  await loseStandby('another program')
  const { code, printed } = await runCheck()
  expect(code).toBe(1)
  expect(printed).toMatch(/^PROBLEM {2}service: COMMITs .* wait for a synchronous standby, so nothing is sent/m)
  expect(await hanging('outboxd check')).toEqual([])
})

test('a command whose COMMIT gets no answer says that it may take effect, which it does', async () => {
  await loseStandby('another program')
  await using pause = startProgram({ args: ['pause', '--reason', 'night'], env: env() })
  const [pid] = await until(
    () => hanging('outboxd command'),
    ({ length }) => length === 1,
  )
  await operator.query('select pg_terminate_backend($1)', [pid])
  const { code, stderr } = await pause.ended()
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^outboxd: .*this may have been done, or may still be done\. .*`outboxd status`.*`outboxd show ID`/m,
  )
  expect(await statusSays(env())).toContain('paused          operator since')
})
