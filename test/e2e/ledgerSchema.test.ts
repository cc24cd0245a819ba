import { expect, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { command as migrate } from '../../src/commands/migrate.ts'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment, startDaemon } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'

/** Two partners beside one ERP: two outbox tables, two services, and a ledger for each. */

const payload = '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "x"}'

async function service() {
  const database = await createDatabase('sandbox_template')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const sandbox = await startSandbox({ databaseUrl: database.url, port: 0, processingTime: 'constant:0.05' })
  onTestFinished(() => sandbox.close())
  return sandbox
}

test('two ledgers in one database: each daemon sends its own table to its own service', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool, url } = database
  const partners = await Promise.all(
    [{}, { LEDGER_SCHEMA: 'partner2', OUTBOX_TABLE: 'outbox2' }].map(async (own) => {
      const sandbox = await service()
      return { sandbox, table: own.OUTBOX_TABLE ?? 'outbox', env: daemonEnvironment(url, sandbox.url, { ...own }) }
    }),
  )
  for (const { env } of partners) expect(await migrate.action(testContext(env), { outbox: true })).toBe(0)
  const [first, second] = partners
  if (first === undefined || second === undefined) throw new Error('two partners')

  const firstDaemon = await startDaemon({ ...first.env, LOG_LEVEL: 'error' })
  onTestFinished(firstDaemon.stop)
  // The other ledger's daemon is not taken for this one's.
  expect(await statusSays(second.env)).toContain('No daemon is running')
  const secondDaemon = await startDaemon({ ...second.env, LOG_LEVEL: 'error' })
  onTestFinished(secondDaemon.stop)

  await pool.query(`insert into outbox (type, payload) select 'data', $1 from generate_series(1, 3)`, [payload])
  await pool.query(`insert into outbox2 (type, payload) select 'data', $1 from generate_series(1, 5)`, [payload])
  for (const { table, sandbox, env } of partners) {
    const rows = table === 'outbox' ? 3 : 5
    await until(
      () => pool.query(`select from ${table} where status = 'completed'`),
      ({ rowCount }) => rowCount === rows,
    )
    const arrived = await fetch(`${sandbox.url}/_sandbox/ledger?limit=1000`)
    const { rows: requests } = (await arrived.json()) as { rows: { method: string; path: string }[] }
    expect(requests.filter(({ method, path }) => method === 'POST' && path.startsWith('/api/'))).toHaveLength(rows)
    expect(await statusSays(env)).toContain('All is well')
  }
  const { rows } = await pool.query(
    `select (select count(*)::int from outboxd.submission) as first, (select count(*)::int from partner2.submission) as second,
       (select count(*)::int from outboxd_jobs.job) + (select count(*)::int from partner2_jobs.job) as jobs,
       array(select distinct actor from partner2.submission_event) as actors`,
  )
  expect(rows[0]).toMatchObject({ first: 3, second: 5, actors: ['outboxd'] })

  const checked = testContext(second.env)
  await check.action(checked, {})
  expect(checked.printed()).toMatch(/^ok {7}ledger: /m)
  const grants = testContext(second.env)
  expect(await migrate.action(grants, { printGrants: 'erp_daemon' })).toBe(0)
  expect(grants.printed()).toContain('grant usage on schema partner2 to erp_daemon;')
  expect(grants.printed()).toMatch(/insert, update, delete on .*partner2\.submission\b/)
  expect(grants.printed()).not.toMatch(/\boutboxd(_jobs)?\./)
})
