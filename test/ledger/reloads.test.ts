import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { answerReload, readInstanceReloads, requestReload, writeHeartbeat } from '../../src/ledger/instances.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const actor = { who: 'operator test', reason: null, account: 'test@test' }
const reload = () => requestReload({ ledger: ledger.pool, keyOnFailure: 'continue', actor })

test('each heartbeat returns the requested reload until its instance has answered', async () => {
  const instance = () => ({ id: randomUUID(), version: '1', host: 'erp-1' })
  const [me, other] = [instance(), instance()]
  const beat = async (one: typeof me) => (await writeHeartbeat(ledger.pool, one)).reloadAsked
  expect([await beat(me), await beat(other)]).toEqual([null, null])
  await reload()
  expect([await beat(me), await beat(other), await beat(me)]).toEqual([1, 1, 1])
  await answerReload(ledger.pool, me.id, { asked: 1, problem: 'a mapping is broken' })
  expect([await beat(me), await beat(other)]).toEqual([null, 1])
  expect(await readInstanceReloads(ledger.pool)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ id: me.id, hasAnswered: true, problem: 'a mapping is broken' }),
      expect.objectContaining({ id: other.id, hasAnswered: false }),
    ]),
  )
  await reload()
  expect(await beat(me)).toBe(2)
})
