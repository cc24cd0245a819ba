import { expect, onTestFinished, test } from 'vitest'
import { resume } from '../../../src/commands/resume.ts'
import { status } from '../../../src/commands/status.ts'
import { testContext } from '../../support/context.ts'
import { until } from '../../support/until.ts'
import { type Rig, setup } from './rig.ts'

/** Refusals in a row of one status and body, from records that share nothing. */

const nginx = {
  kind: 'answer',
  status: 400,
  body: '<center><h1>400 Bad Request</h1>The SSL certificate error</center><hr><center>nginx</center>',
  contentType: 'text/html',
  endpoint: 'submit',
}

async function started(): Promise<{ rig: Rig; port: number }> {
  const rig = await setup()
  onTestFinished(() => rig[Symbol.asyncDispose]())
  return { rig, port: (await rig.start()).port }
}

async function insertMany(rig: Rig, more: Parameters<Rig['insert']>[1] = {}): Promise<string[]> {
  const markers = Array.from({ length: 25 }, (_, i) => `mass-${i}-`)
  for (const marker of markers) await rig.insert(marker, more)
  return markers
}

test('nginx’s 400 for a certificate: a pause and an alert, and all are completed when it is mended (all were rejected)', async () => {
  const { rig, port } = await started()
  await rig.fault(nginx)
  const markers = await insertMany(rig)
  await until(rig.pauses, (reasons) => reasons.includes('unauthorized'))
  const rejected = () =>
    rig.pool.query(`select from outboxd.submission where state = 'rejected'`).then(({ rowCount }) => rowCount)
  // Up to those that were on the wire with the tenth.
  expect(await until(rejected, (n) => n !== null && n <= 8)).toBeLessThanOrEqual(8)

  const context = testContext(rig.env)
  await status(context, {})
  expect(context.printed()).toMatch(
    /Record after record \(data\) is refused in the same words.*resume --believe-refusals/,
  )
  expect(context.printed()).not.toContain('All is well')
  const metrics = () => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text())
  await until(metrics, (text) => text.includes('outboxd_problems{kind="mass_refusal"} 1'))

  await rig.control('DELETE', 'faults')
  const fates = await Promise.all(markers.map((marker) => rig.becomes(marker, 'completed')))
  expect(fates.every(({ effects }) => effects === 1)).toBe(true)
  await until(metrics, (text) => text.includes('outboxd_problems{kind="mass_refusal"} 0'))
}, 60_000)

test('an operator who knows that it is right has them rejected', async () => {
  const { rig } = await started()
  await rig.fault(nginx)
  const markers = await insertMany(rig)
  await until(rig.pauses, (reasons) => reasons.includes('unauthorized'))
  const context = testContext(rig.env)
  expect(await resume(context, { believeRefusals: true })).toBe(0)
  expect(context.said()).toMatch(/Taken at its word for a day: .*400.*certificate error/)
  await Promise.all(markers.map((marker) => rig.becomes(marker, 'rejected')))
}, 60_000)

test('the service’s own judgement, under a code: rejected, however many in a row', async () => {
  const { rig } = await started()
  const markers = await insertMany(rig, { customerId: 'UNKNOWN1' })
  const fates = await Promise.all(markers.map((marker) => rig.becomes(marker, 'rejected')))
  expect(fates.every(({ code, posts }) => code === 'E001' && posts.length === 1)).toBe(true)
  expect(await rig.pauses()).toEqual([])
}, 60_000)
