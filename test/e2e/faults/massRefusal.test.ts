import { expect, onTestFinished, test } from 'vitest'
import { command as resume } from '../../../src/commands/resume.ts'
import { testContext } from '../../support/context.ts'
import type { Daemon } from '../../support/daemon.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/** Refusals in a row with the same status and body, for unrelated records. */

const nginx = {
  kind: 'answer',
  status: 400,
  body: '<center><h1>400 Bad Request</h1>The SSL certificate error</center><hr><center>nginx</center>',
  contentType: 'text/html',
  endpoint: 'submit',
}

async function started(): Promise<{ harness: Harness; daemon: Daemon }> {
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  return { harness, daemon: await harness.start() }
}

async function insertMany(harness: Harness, more: Parameters<Harness['insert']>[1] = {}): Promise<string[]> {
  const markers = Array.from({ length: 25 }, (_, i) => `mass-${i}-`)
  for (const marker of markers) await harness.insert(marker, more)
  return markers
}

test("ten equal refusals in a row, as nginx's 400: all sending pauses; when it is fixed, all are completed", async () => {
  const { harness, daemon } = await started()
  await harness.fault(nginx)
  const markers = await insertMany(harness)
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))
  const rejected = () =>
    harness.pool.query(`select from outboxd.submission where state = 'rejected'`).then(({ rowCount }) => rowCount)
  // Records that were on the wire together with the tenth may be rejected.
  expect(await until(rejected, (n) => n !== null && n <= 8)).toBeLessThanOrEqual(8)

  // Repeated, because between two pauses a trial is on the wire.
  const says = await until(
    () => statusSays(harness.env),
    (text) =>
      /paused +unauthorized .* 10 records in a row \(endpoint data\) got this refusal.*all sending is paused/.test(
        text,
      ),
  )
  expect(says).toMatch(
    /The service refused 10 records in a row \(data\) with the same words.*resume --believe-refusals/,
  )
  expect(says).not.toContain('All is well')
  const metrics = () => scrape(daemon)
  await until(metrics, (text) => text.includes('outboxd_problems{kind="mass_refusal"} 1'))

  await harness.control('DELETE', 'faults')
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
  expect(outcomes.every(({ effects }) => effects === 1)).toBe(true)
  await until(metrics, (text) => text.includes('outboxd_problems{kind="mass_refusal"} 0'))
})

test('ten refusals that the operator confirms: rejected', async () => {
  const { harness } = await started()
  await harness.fault(nginx)
  const markers = await insertMany(harness)
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))
  const context = testContext(harness.env)
  expect(await resume.action(context, { believeRefusals: true })).toBe(0)
  expect(context.messages()).toMatch(/For a day, records that get this refusal are rejected: .*400.*certificate error/)
  await Promise.all(markers.map((marker) => harness.becomes(marker, 'rejected')))
})

test('record after record refused under E001: rejected', async () => {
  const { harness } = await started()
  const markers = await insertMany(harness, { customerId: 'UNKNOWN1' })
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'rejected')))
  expect(outcomes.every(({ code, posts }) => code === 'E001' && posts.length === 1)).toBe(true)
  expect(await harness.pauses()).toEqual([])
})
