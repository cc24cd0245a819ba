import { afterEach, beforeAll, expect, test } from 'vitest'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** One record does not stop the others. */

const harness = openForFile(() => setup())
let daemon: Daemon
beforeAll(async () => {
  daemon = await harness.start()
})
afterEach(() => harness.control('DELETE', 'faults'))

const firewall = { kind: 'answer', status: 403, body: '<h1>Request blocked</h1>', contentType: 'text/html' }

/** Number of POSTs of the record that the service got. */
const posts = (marker: string) => harness.outcome(marker).then((outcome) => outcome.posts.length)

test("a firewall's 403 for one record only: rejected at the third", async () => {
  await harness.fault({ ...firewall, endpoint: 'submit', bodyContains: 'poison-' })
  await harness.insert('poison-')
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))

  // Checks status during the pause.
  await until(
    () => statusSays(harness.env),
    (said) => said.includes('Nothing is sent: paused (unauthorized)'),
  )

  // The only record is tried again, because the service may be refusing all records.
  await until(
    () => posts('poison-'),
    (n) => n >= 4,
  )
  expect(await harness.outcome('poison-')).toMatchObject({ status: 'queued' })

  for (let i = 0; i < 10 && (await harness.outcome('poison-')).state !== 'rejected'; i++) {
    const before = await posts('poison-')
    await harness.insert(`healthy-${i}-`)
    await harness.becomes(`healthy-${i}-`, 'completed')
    await until(
      () => harness.outcome('poison-'),
      ({ state, posts }) => state === 'rejected' || posts.length > before,
    )
  }
  const outcome = await harness.becomes('poison-', 'rejected')
  expect(outcome.error).toMatch(/403: .*Request blocked.*3 times while others got through, so the cause is this record/)
  expect(outcome.effects).toBe(0)

  await harness.insert('last-')
  await harness.becomes('last-', 'completed')
  await until(harness.pauses, (reasons) => reasons.length === 0)
  expect(await statusSays(harness.env)).toMatch(/^1 record needs attention \(1 rejected\)\. `outboxd list/)
  const metrics = () => scrape(daemon)
  await until(metrics, (text) => text.includes('outboxd_submissions{state="rejected"} 1'))
})
