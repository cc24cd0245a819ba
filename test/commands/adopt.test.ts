import { beforeEach, expect, test } from 'vitest'
import { command as adopt } from '../../src/commands/adopt.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import {
  assertLedgerBelongsToService,
  bindLedgerToServiceIfUnbound,
  ServiceMismatch,
} from '../../src/ledger/binding.ts'
import type { Database } from '../../src/postgres/database.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { dataFile, mappingFiles, openFixtureForFile, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()
beforeEach(async () => {
  await fixture.ledger.pool.query('update outboxd.ledger set base_url = null, auth_url = null, client_hash = null')
  await bindLedgerToServiceIfUnbound(fixture.ledger.pool, former, 'daemon')
})

const former = { baseUrl: 'https://test.example', authUrl: 'https://auth.example', clientId: 'me' }
async function run(options: OptionsOf<typeof adopt>, url = 'https://production.example') {
  const context = fixture.context(null, serviceEnvironment(url))
  const code = await adopt.action(context, { yes: true, ...options })
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
    expect(refused.message).not.toMatch(/\byou\b(?!r)/)
  }
})

test('of two daemons with different services that start at once, the first binds the ledger', async () => {
  const { pool } = fixture.ledger
  await pool.query('update outboxd.ledger set base_url = null, auth_url = null, client_hash = null')
  const bindsSecond: Database = {
    async query(...asked: [string]) {
      if (asked[0].startsWith('update')) await bindLedgerToServiceIfUnbound(pool, former, 'first')
      return pool.query(...asked)
    },
  } as Database
  await bindLedgerToServiceIfUnbound(bindsSecond, { ...former, clientId: 'you' }, 'second')
  await assertLedgerBelongsToService(pool, former)
})

test('adopt --same says that the service has a new address, whatever is under way', async () => {
  await fixture.end(uncertain, { outboxId: '1' })
  expect(await run({ same: true, dryRun: true, json: true })).toMatchObject({
    code: 0,
    printed: expect.stringContaining('"https://test.example"'),
  })
  expect(await run({ same: true })).toMatchObject({
    code: 0,
    said: expect.stringContaining('the service https://production.example.\nThey are those that the ledger knows'),
  })
  const acts = await fixture.ledger.pool.query('select act, detail from outboxd.operator_act')
  expect(acts.rows).toMatchObject([
    {
      act: 'adopt',
      detail: { service: { baseUrl: 'https://production.example', authUrl: 'https://production.example' } },
    },
  ])
  expect(await run({ same: true })).toMatchObject({ code: 0, said: expect.not.stringContaining('new names') })
})

test('adopt without --same is refused', async () => {
  expect(await run({})).toMatchObject({ code: 2, said: expect.stringContaining('give --same') })
})

test('a different id column is refused while the table still has the former, because all rows would be sent again', async () => {
  const { pool } = fixture.ledger
  await pool.query(`create table source (id bigint primary key, no bigint not null unique, doc jsonb, done boolean);
    update outboxd.ledger set table_name = 'public.source', id_column = 'id'`)
  const yaml = 'table: source\nid: no\ntype: { constant: data }\npayload: doc\nstate: { flag: done, set: [queued] }\n'
  const MAPPINGS_DIR = mappingFiles({ 'data.yaml': dataFile, 'outbox.yaml': yaml })
  const adopts = async () => {
    const context = fixture.context(null, { MAPPINGS_DIR })
    return { code: await adopt.action(context, { same: true, yes: true }), said: context.messages() }
  }
  expect(await adopts()).toMatchObject({ code: 2, said: expect.stringContaining('name id as "id"') })
  await pool.query('alter table source drop column id')
  expect(await adopts()).toMatchObject({ code: 0, said: expect.stringContaining('new names') })
})

test('resolve is refused if the configured service is not the ledger’s', async () => {
  await fixture.end(uncertain, { outboxId: '1' })
  const context = fixture.context(null, serviceEnvironment('https://production.example'))
  await expect(resolve.action(context, 'outbox:1', { arrived: 'tx-9', yes: true })).rejects.toThrow(ServiceMismatch)
})
