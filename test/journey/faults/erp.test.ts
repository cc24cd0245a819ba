import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { check } from '../../../src/commands/check.ts'
import { status } from '../../../src/commands/status.ts'
import { testContext } from '../../support/context.ts'
import { until } from '../../support/until.ts'
import { type Daemon, type Rig, setup } from './rig.ts'

/** What outboxd puts into the ERP's database never harms the ERP, and what it therefore leaves undone is told. */

let rig: Rig
let daemon: Daemon
beforeAll(async () => {
  rig = await setup()
  daemon = await rig.start()
})
afterAll(() => rig[Symbol.asyncDispose]())

async function said(): Promise<string> {
  const context = testContext(rig.env)
  await status(context, {})
  return context.printed()
}

const metrics = async () => (await fetch(`http://127.0.0.1:${daemon.port}/metrics`)).text()

test('change capture that a dropped column broke: the ERP goes on, status and the metric say it until it is mended', async () => {
  await rig.pool.query(
    `create table sales_order (id int primary key, customer text, ordered_at timestamptz, amount numeric)`,
  )
  await rig.pool.query(readFileSync('deploy/change-capture/install.sql', 'utf8'))
  await rig.pool.query(`select outboxd_capture.install('sales_order', 'data', '{amount}',
    payload => '{customerId, customer, orderDate, ordered_at, amount, amount, field2, customer}')`)
  await rig.pool.query('alter table sales_order rename amount to net')
  await rig.pool.query(`insert into sales_order values (1, 'Order-1-', now(), 12.5)`)

  await until(metrics, (text) => text.includes('outboxd_problems{kind="change_capture"} 1'))
  expect(await said()).toMatch(
    /Not all changes of 1 table of the ERP were captured \(public\.sales_order\).*outboxd_capture\.retry\(\)/,
  )

  const checked = testContext(rig.env)
  await check(checked, {})
  expect(checked.printed()).toMatch(
    /PROBLEM {2}change capture: public\.sales_order: .*1 noted: 42703: column n.amount does not exist/,
  )

  await rig.pool.query('alter table sales_order rename net to amount')
  await rig.pool.query('select outboxd_capture.retry()')
  await rig.becomes('Order-1-', 'completed')
  await until(metrics, (text) => text.includes('outboxd_problems{kind="change_capture"} 0'))
  expect(await said()).toMatch(/^All is well/)
})
