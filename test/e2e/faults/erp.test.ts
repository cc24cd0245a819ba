import { afterAll, beforeAll, expect, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
import { command as migrate } from '../../../src/commands/migrate.ts'
import { asInstaller, installCapture } from '../../support/changeCapture.ts'
import { testContext } from '../../support/context.ts'
import type { Daemon } from '../../support/daemon.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/** outboxd's triggers in the ERP's database never harm the ERP. If they skip a change for that, it is reported. */

let harness: Harness
let daemon: Daemon
beforeAll(async () => {
  harness = await setup()
  daemon = await harness.start()
})
afterAll(() => harness[Symbol.asyncDispose]())

test('the outbox refuses captured rows: the ERP goes on, `retry()` captures', async () => {
  await harness.pool.query(
    `create table sales_order (id int primary key, customer text, ordered_at timestamptz, amount numeric)`,
  )
  await installCapture(harness.pool)
  await asInstaller(
    harness.pool,
    `select outboxd_capture.install('sales_order', 'data',
    payload => '{customerId, customer, orderDate, ordered_at, amount, amount, field2, customer}')`,
  )
  await harness.pool.query('alter table outbox add constraint none check (id < 0) not valid')
  await harness.pool.query(`insert into sales_order values (1, 'Order-1-', now(), 12.5)`)

  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_problems{kind="change_capture"} 1'),
  )
  expect(await statusSays(harness.env)).toMatch(
    /The trigger did not capture all changes of 1 table of the ERP \(public\.sales_order\).*outboxd_capture\.retry\(\)/,
  )

  const checked = testContext(harness.env)
  await check.action(checked, {})
  expect(checked.printed()).toMatch(/PROBLEM {2}change capture: public\.sales_order: .*\(1 noted\): 23514/)

  await harness.pool.query('alter table outbox drop constraint none')
  await asInstaller(harness.pool, 'select outboxd_capture.retry()')
  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_problems{kind="change_capture"} 0'),
  )
  await until(
    () => harness.pool.query(`select status from outbox`),
    ({ rows }) => rows[0]?.status === 'completed',
  )
  expect(await statusSays(harness.env)).toMatch(/^All is well/)
})

test('a table has a long history: `migrate`, `check` and `status` count', async () => {
  await using fresh = await setup()
  await fresh.pool.query(`insert into outbox (type, payload, created_at)
    select 'data', '{}', timestamptz '2020-01-01 00:00Z' + n * interval '1 day' from generate_series(0, 3999) n`)
  const context = testContext(fresh.env)
  await migrate.action(context, {})
  await check.action(context, {})
  const message =
    /nothing was captured yet, and 4,?000 rows wait, created from 2020-01-01T.* to 2030-12-13T.*\. The daemon will send all of them.*outboxd adopt --start/
  expect(context.messages()).toMatch(message)
  expect(context.printed()).toMatch(message)

  const started = await fresh.start({ CAPTURE_WINDOW: '10' })
  await until(
    () => scrape(started),
    (text) => text.includes('outboxd_problems{kind="outbox_history"} 1'),
  )
  expect(await statusSays(fresh.env)).toMatch(
    /4000 rows waited in the outbox table before the first capture.*adopt --start now/,
  )
  await fresh.pool.query(`update outbox set status = 'discarded' where status = 'new'`)
  await until(
    () => scrape(started),
    (text) => text.includes('outboxd_problems{kind="outbox_history"} 0'),
  )
  const again = testContext(fresh.env)
  await check.action(again, {})
  expect(again.printed()).not.toContain('nothing was captured yet')
})
