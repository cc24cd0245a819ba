import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { status } from '../../../src/commands/status.ts'
import { testContext } from '../../support/context.ts'
import { until } from '../../support/until.ts'
import { type Daemon, type Rig, setup } from './rig.ts'

/** Ids that the service gives twice, as a proxy that caches answers does. */

let rig: Rig
let daemon: Daemon
beforeAll(async () => {
  rig = await setup()
  daemon = await rig.start()
})
afterAll(() => rig[Symbol.asyncDispose]())
afterEach(() => rig.control('DELETE', 'faults'))

test('a record that is given the id of another is uncertain, and status and the metrics say so', async () => {
  await rig.insert('owner-')
  await rig.becomes('owner-', 'completed')
  const { rows } = await rig.pool.query<{ id: string }>('select transaction_id as id from outbox')
  await rig.fault({ kind: 'wrong_id', id: rows[0]?.id, endpoint: 'submit', times: 1 })
  await rig.insert('misled-')
  const fate = await rig.becomes('misled-', 'uncertain')
  expect(fate.error).toContain(`the id ${rows[0]?.id}, which outbox:1 has already`)
  expect(await rig.fate('owner-')).toMatchObject({ state: 'completed' })

  const context = testContext(rig.env)
  await status(context, {})
  expect(context.printed()).toContain('1 record waits for a person (1 uncertain)')
  expect(context.printed()).not.toContain('All is well')
  await until(
    async () => (await fetch(`http://127.0.0.1:${daemon.port}/metrics`)).text(),
    (text) =>
      text.includes('outboxd_contract_breaches_total{kind="duplicate_id"} 1') &&
      text.includes('outboxd_submissions{state="uncertain"} 1'),
  )
})
