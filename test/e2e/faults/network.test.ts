import { afterEach, beforeAll, expect, test } from 'vitest'
import type { Fault } from '../../support/faultProxy.ts'
import { openForFile } from '../../support/openForFile.ts'
import { setup, shortTimeout } from './harness.ts'

/** The network between the daemon and the service breaks at every point of a POST. */

const harness = openForFile(() => setup())
beforeAll(async () => {
  await harness.start(shortTimeout)
})
afterEach(() => harness.service.setFault(null))

interface Row {
  fault: Fault
  /** Number of POSTs that reached the service complete. */
  arrived: 0 | 1
}

test.each<Row>([
  { fault: { kind: 'cut-before-request' }, arrived: 0 },
  { fault: { kind: 'reset' }, arrived: 0 },
  { fault: { kind: 'cut-during-request' }, arrived: 0 },
  { fault: { kind: 'cut-during-request', afterBytes: 40 }, arrived: 0 },
  { fault: { kind: 'cut-after-request' }, arrived: 1 },
  { fault: { kind: 'reset-after-request' }, arrived: 1 },
  { fault: { kind: 'cut-during-answer' }, arrived: 1 },
  { fault: { kind: 'hang' }, arrived: 0 },
  { fault: { kind: 'hang-after-request' }, arrived: 1 },
  { fault: { kind: 'half-open' }, arrived: 0 },
])('the connection is cut, reset, silent or half-open, in or around request or answer ($fault): uncertain, not sent again', async ({
  fault,
  arrived,
}) => {
  // Gets a token and a connection before the fault, so that the fault hits the POST.
  const name = `${fault.kind}${'afterBytes' in fault ? fault.afterBytes : ''}`
  await harness.insert(`${name}-before-`)
  await harness.becomes(`${name}-before-`, 'completed')
  await harness.service.setFault(fault)
  await harness.insert(`${name}-struck-`)
  const outcome = await harness.becomes(`${name}-struck-`, 'uncertain')
  expect(outcome.effects).toBe(arrived)
  await harness.service.setFault(null)
  await harness.insert(`${name}-after-`)
  expect(await harness.becomes(`${name}-after-`, 'completed')).toMatchObject({ effects: 1 })
  expect((await harness.outcome(`${name}-struck-`)).posts).toHaveLength(arrived)
})

test.each([
  { name: 'late', fault: { kind: 'delay', delayMs: 60_000 } },
  { name: 'dripping', fault: { kind: 'drip', intervalMs: 5_000 } },
])('an answer is not whole at the deadline ($name): uncertain, not sent again', async ({ name, fault }) => {
  await harness.fault({ ...fault, endpoint: 'submit', bodyContains: `${name}-` })
  await harness.insert(`${name}-`)
  expect(await harness.becomes(`${name}-`, 'uncertain')).toMatchObject({ posts: [expect.anything()], effects: 1 })
})

test('an answer in pieces: completed', async () => {
  await harness.service.setFault({ kind: 'slice', bytes: 7 })
  await harness.insert('sliced-')
  expect(await harness.becomes('sliced-', 'completed')).toMatchObject({ effects: 1, posts: [200] })
})
