import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Fault } from '../../support/faultProxy.ts'
import { type Rig, setup } from './rig.ts'

/** The network between the daemon and the service, broken at every point of a POST. */

let rig: Rig
beforeAll(async () => {
  rig = await setup()
  await rig.start()
})
afterAll(() => rig[Symbol.asyncDispose]())
afterEach(() => rig.service.setFault(null))

interface Row {
  fault: Fault
  /** POSTs that the service got whole. */
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
])('$fault: the request began to leave, so the record is uncertain and never sent again', async ({
  fault,
  arrived,
}) => {
  // A token and a connection are there before the fault, so that it strikes the POST.
  const name = `${fault.kind}${'afterBytes' in fault ? fault.afterBytes : ''}`
  await rig.insert(`${name}-before-`)
  await rig.becomes(`${name}-before-`, 'completed')
  await rig.service.setFault(fault)
  await rig.insert(`${name}-struck-`)
  const fate = await rig.becomes(`${name}-struck-`, 'uncertain')
  expect(fate.effects).toBe(arrived)
  await rig.service.setFault(null)
  await rig.insert(`${name}-after-`)
  expect(await rig.becomes(`${name}-after-`, 'completed')).toMatchObject({ effects: 1 })
  expect((await rig.fate(`${name}-struck-`)).posts).toHaveLength(arrived)
})

test('an answer in pieces of one byte is an answer', async () => {
  await rig.service.setFault({ kind: 'slice', bytes: 7 })
  await rig.insert('sliced-')
  expect(await rig.becomes('sliced-', 'completed')).toMatchObject({ effects: 1, posts: [200] })
})
