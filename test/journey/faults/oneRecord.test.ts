import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { status } from '../../../src/commands/status.ts'
import { testContext } from '../../support/context.ts'
import { until } from '../../support/until.ts'
import { type Rig, setup } from './rig.ts'

/** One record does not stop the others. */

let rig: Rig
let port: number
beforeAll(async () => {
  rig = await setup()
  ;({ port } = await rig.start())
})
afterAll(() => rig[Symbol.asyncDispose]())
afterEach(() => rig.control('DELETE', 'faults'))

const firewall = { kind: 'answer', status: 403, body: '<h1>Request blocked</h1>', contentType: 'text/html' }

/** How many POSTs of the record the service has had. */
const posts = (marker: string) => rig.fate(marker).then((fate) => fate.posts.length)

test('a firewall that refuses one record: it ends before a person, with its words (it paused everybody for ever)', async () => {
  await rig.fault({ ...firewall, endpoint: 'submit', bodyContains: 'poison-' })
  await rig.insert('poison-')
  await until(rig.pauses, (reasons) => reasons.includes('unauthorized'))

  // What is said during it.
  const during = testContext(rig.env)
  await status(during, {})
  expect(during.printed()).toMatch(/Nothing is sent: paused \(unauthorized\)/)

  // Alone it goes on: the service may be refusing everybody.
  await until(
    () => posts('poison-'),
    (n) => n >= 4,
  )
  expect(await rig.fate('poison-')).toMatchObject({ status: 'queued' })

  for (let i = 0; i < 10 && (await rig.fate('poison-')).state !== 'rejected'; i++) {
    const before = await posts('poison-')
    await rig.insert(`healthy-${i}-`)
    await rig.becomes(`healthy-${i}-`, 'completed')
    await until(
      () => rig.fate('poison-'),
      ({ state, posts }) => state === 'rejected' || posts.length > before,
    )
  }
  const fate = await rig.becomes('poison-', 'rejected')
  expect(fate.error).toMatch(/403: .*Request blocked.*3 times while others got through, so it is this record/)
  expect(fate.effects).toBe(0)

  await rig.insert('last-')
  await rig.becomes('last-', 'completed')
  await until(rig.pauses, (reasons) => reasons.length === 0)
  const after = testContext(rig.env)
  await status(after, {})
  expect(after.printed()).toMatch(/^1 record waits for a person \(1 rejected\): outboxd list/)
  const metrics = () => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text())
  await until(metrics, (text) => text.includes('outboxd_submissions{state="rejected"} 1'))
}, 60_000)
