import { afterEach, beforeAll, expect, test } from 'vitest'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** The service gives an id twice, as a caching proxy would. */

const harness = openForFile(() => setup())
let daemon: Daemon
beforeAll(async () => {
  daemon = await harness.start()
})
afterEach(() => harness.control('DELETE', 'faults'))

test("the service gives another record's id: uncertain, breach `duplicate_id`", async () => {
  await harness.insert('owner-')
  await harness.becomes('owner-', 'completed')
  const { rows } = await harness.pool.query<{ id: string }>('select transaction_id as id from outbox')
  await harness.fault({ kind: 'wrong_id', id: rows[0]?.id, endpoint: 'submit', times: 1 })
  await harness.insert('misled-')
  const outcome = await harness.becomes('misled-', 'uncertain')
  expect(outcome.error).toContain(`the id ${rows[0]?.id}, which outbox:1 already has`)
  expect(await harness.outcome('owner-')).toMatchObject({ state: 'completed' })

  const says = await statusSays(harness.env)
  expect(says).toContain('1 record needs attention (1 uncertain)')
  expect(says).not.toContain('All is well')
  await until(
    () => scrape(daemon),
    (text) =>
      text.includes('outboxd_contract_breaches_total{kind="duplicate_id"} 1') &&
      text.includes('outboxd_submissions{state="uncertain"} 1'),
  )
})
