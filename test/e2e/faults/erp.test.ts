import { afterAll, beforeAll, expect, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
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
