import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { command as adopt } from '../../src/commands/adopt.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as recover } from '../../src/commands/recover.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import {
  assertLedgerBelongsToService,
  bindLedgerToServiceIfUnbound,
  ServiceMismatch,
} from '../../src/ledger/binding.ts'
import { problemMessages } from '../../src/operations/problemMessages.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { type Fixture, failedE003, openFixture, uncertain } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(async () => {
  await fixture.reset()
  await fixture.ledger.pool.query('update outboxd.ledger set base_url = null, auth_url = null, client_hash = null')
  await bindLedgerToServiceIfUnbound(fixture.ledger.pool, former, 'daemon')
})

const former = { baseUrl: 'https://test.example', authUrl: 'https://auth.example', clientId: 'me' }
async function run(options: OptionsOf<typeof adopt>, url = 'https://production.example') {
  const context = fixture.context(null, serviceEnvironment(url))
  const code = await adopt.action(context, { service: true, yes: true, ...options })
  return { code, said: context.messages(), printed: context.printed() }
}

test.each([
  ['https://TEST.example:443/', 'https://auth.example', 'me', null],
  [
    'https://test.example/v2',
    'https://auth.example',
    'me',
    'SERVICE_BASE_URL is https://test.example/v2, not https://test.example)',
  ],
  ['https://test.example', 'https://auth.example:8443', 'me', 'SERVICE_AUTH_URL is https://auth.example:8443, not'],
  ['https://test.example', 'https://auth.example', 'you', 'SERVICE_CLIENT_ID is a different client'],
])('a ledger of one service is compared with %s, %s and the client %s', async (baseUrl, authUrl, clientId, difference) => {
  const refused = await assertLedgerBelongsToService(fixture.ledger.pool, { baseUrl, authUrl, clientId }).then(
    () => null,
    (error: Error) => error,
  )
  if (difference === null) expect(refused).toBeNull()
  else {
    if (!(refused instanceof ServiceMismatch)) throw new Error('it was not refused')
    expect(refused.message).toContain(difference)
    // What status says about a daemon that did not start.
    const problem = { ...refused.problem, sinceMs: 0, seenMs: 0, times: 1, retryMs: null }
    expect(problemMessages([problem])[0]).toContain(difference.replace(/\)$/, ''))
    expect(refused.message).not.toMatch(/\byou\b(?!r)/)
  }
})

test('adopt --service is refused while a record may be at the former service, unless --same says that it is the same', async () => {
  await fixture.end(uncertain, { outboxId: '1' })
  expect(await run({})).toMatchObject({ code: 1, said: expect.stringContaining('(1 uncertain)') })
  expect(await run({ dryRun: true, json: true })).toMatchObject({
    code: 1,
    printed: expect.stringContaining('"records"'),
  })
  expect(await run({ same: true })).toMatchObject({ code: 0, said: expect.stringContaining('It is the same service') })
  const acts = await fixture.ledger.pool.query('select act, detail from outboxd.operator_act')
  expect(acts.rows).toEqual([
    {
      act: 'adopt',
      detail: {
        service: { baseUrl: 'https://production.example', authUrl: 'https://production.example' },
        same: true,
        former: 'https://test.example',
      },
    },
  ])
})

test('adopt --service is allowed if all records have ended or were never sent', async () => {
  await fixture.end(failedE003, { outboxId: '1' })
  await fixture.ledger.capture([{ outboxId: '2' }])
  expect(await run({ dryRun: true })).toMatchObject({ code: 0 })
  expect(await run({})).toMatchObject({ code: 0, said: expect.stringContaining('It is a different service') })
})

test('adopt --service is refused while a record is accepted or will be sent again', async () => {
  await fixture.end({ state: 'accepted', transactionId: 'tx-1', pollInMs: 60_000 }, { outboxId: '1' })
  await fixture.ledger.capture([{ outboxId: '2' }])
  await fixture.ledger.pool.query(`update outboxd.submission set attempt = 1 where outbox_id = '2'`)
  expect(await run({})).toMatchObject({ code: 1, said: expect.stringContaining('(1 accepted, 1 queued)') })
})

test('resolve is refused if the configured service is not the ledger’s', async () => {
  await fixture.end(uncertain, { outboxId: '1' })
  const context = fixture.context(null, serviceEnvironment('https://production.example'))
  await expect(resolve.action(context, 'outbox:1', { arrived: 'tx-9', yes: true })).rejects.toThrow(ServiceMismatch)
})

test('--service is refused with --new or --start', async () => {
  expect(await run({ new: true })).toMatchObject({ code: 2 })
  expect(await run({ start: 'now' })).toMatchObject({ code: 2 })
})

test('the steps of docs/run/restore.md for a test copy bind its ledger to a different service before a daemon runs', async () => {
  await fixture.end(uncertain, { outboxId: '1' })
  await fixture.end({ state: 'accepted', transactionId: 'tx-1', pollInMs: 60_000 }, { outboxId: '2' })
  await fixture.ledger.pool.query('update outboxd.history set database_oid = 1')
  const context = () => fixture.context(null, serviceEnvironment('https://production.example'))
  expect(await recover.action(context(), { restored: true, as: 'uncertain', yes: true })).toBe(0)
  const open = { state: 'uncertain,accepted', reason: 'copy', yes: true }
  expect(await discard.action(context(), [], open)).toBe(0)
  expect(await run({})).toMatchObject({ code: 0, said: expect.stringContaining('It is a different service') })
})
