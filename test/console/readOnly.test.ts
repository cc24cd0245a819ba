import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fixture, failedE003, openFixture, payloadOf } from '../commands/fixture.ts'
import { dropRole, grantRole } from '../support/grantRole.ts'
import { type OpenedConsole, openConsole } from './openConsole.ts'

/** `console --read-only` with the role of `migrate --print-grants ROLE --read-only`, which may not write. */

const role = `look_${randomBytes(4).toString('hex')}`
let fixture: Fixture
let served: OpenedConsole
beforeAll(async () => {
  fixture = await openFixture()
  await fixture.reset()
  const { url, pool } = fixture.ledger
  const env = await grantRole({ env: { DATABASE_URL: url }, pool }, role, { readOnly: true })
  served = await openConsole(fixture.context(null, env), { readOnly: true, as: 'Ada' })
})
afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await dropRole(fixture.ledger.pool, role)
  await fixture[Symbol.asyncDispose]()
})

test('a read-only console shows every page', async () => {
  for (const path of ['/', '/records', '/records?by-cause=on', '/mapping', '/audit', '/audit.csv'])
    expect(await served.get(path), path).toMatchObject({ status: 200 })
})

const actsLogged = async () => (await fixture.ledger.pool.query('select from outboxd.operator_act')).rowCount

test('a read-only console shows the values of a record and logs that itself instead of in the ledger', async () => {
  const id = await fixture.end(failedE003, { outboxId: '1', payload: payloadOf({ field2: '"Erika"' }) })
  const path = `/records/${id}`
  expect((await served.get(path)).text).toContain('this console’s own log notes it')
  expect((await served.post(`${path}/show`, {}, path)).status).toBe(303)
  expect((await served.get(path)).text).toContain('Erika')
  expect(served.context.messages()).toContain(`outboxd: operator Ada asked for the values of ${id}`)
  expect(served.context.messages()).not.toContain('Erika')
  expect(await actsLogged()).toBe(0)
})

test('a read-only console shows the values of a waiting row and logs that itself instead of in the ledger', async () => {
  const row = await fixture.row(payloadOf({ field2: '"Erika"' }))
  const path = `/mapping?outbox=${row}`
  expect((await served.get(path)).text).toContain('this console’s own log notes it')
  expect((await served.post('/mapping/show', { outbox: row }, path)).status).toBe(303)
  expect((await served.get(path)).text).toContain('Erika')
  expect(served.context.messages()).toContain(`outboxd: operator Ada asked for the values of outbox:${row}`)
  expect(await actsLogged()).toBe(0)
})

test('a read-only console logs searches and downloads itself instead of in the ledger', async () => {
  const id = await fixture.end(failedE003, { outboxId: '41', payload: payloadOf({ field2: '"Otto"' }) })
  await served.get('/records?containing=Ott')
  await served.get('/audit.csv')
  await served.get('/audit.csv?since=2026-01-01')
  const said = served.context.messages()
  expect(said).toMatch(/outboxd: operator Ada searched the values of 2 records and found 1: .*outbox:41/)
  expect(said).toContain(`${id} (outbox:41)`)
  expect(said).toContain('outboxd: operator Ada downloaded audit.csv (all records)')
  expect(said).toContain('downloaded audit.csv since 2026-01-01T00:00:00.000Z (all records)')
  expect(said).not.toContain('Ott')
  expect(await actsLogged()).toBe(0)
})
