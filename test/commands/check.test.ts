import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { check } from '../../src/commands/check.ts'
import { interpretCall } from '../../src/commands/checkService.ts'
import { credentials, type Setup, setup as startSandbox } from '../sandbox/setup.ts'
import { noAnswer, response } from '../support/answers.ts'
import { createDatabase } from '../support/database.ts'
import { readOnly } from '../support/readOnly.ts'
import { type Fixture, mappingFiles, openFixture } from './fixture.ts'

let fixture: Fixture
let service: Setup
beforeAll(async () => {
  fixture = await openFixture()
  service = await startSandbox()
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
beforeEach(() => fixture.reset())

async function run(env: Record<string, string> = {}, json = false, askAnyway = false) {
  const context = fixture.context(null, {
    SERVICE_BASE_URL: service.sandbox.url,
    SERVICE_AUTH_URL: service.sandbox.url,
    SERVICE_CLIENT_ID: credentials.clientId,
    SERVICE_CLIENT_SECRET: credentials.clientSecret,
    RATE_LIMIT_REQUESTS: '500',
    ...env,
  })
  const code = await check(context, { json, askAnyway })
  return { code, printed: context.printed(), messages: context.messages() }
}

const slotsTaken = async () => {
  const { rows } = await fixture.ledger.pool.query(
    `select count(*)::int as n from outboxd.slot where free_at > now() and free_at < now() + interval '61 s'`,
  )
  return rows[0].n
}

test('where all is well each line says ok, and the three requests were paid for', async () => {
  const { code, printed, messages } = await run()
  expect(printed).toMatch(
    /^ok {6} configuration: .*\nok {6} ledger: PostgreSQL \d+.*\nok {6} outbox: .*\nok {6} mappings: data to data, order to orders.*\nok {6} token: .*\nok {6} service: it takes our token and answers \(404 in \d+ ms\).*\n$/,
  )
  expect(messages).toBe('All is well.\n')
  expect(code).toBe(0)
  expect(await slotsTaken()).toBe(3)
})

test('before a budget is set up it asks all the same', async () => {
  await fixture.ledger.pool.query('truncate outboxd.slot')
  expect((await run()).code).toBe(0)
})

const requestsMade = async () => {
  const ledger = await fetch(`${service.sandbox.url}/_sandbox/ledger?limit=1000`)
  return ((await ledger.json()) as { rows: unknown[] }).rows.length
}

test('where the ledger cannot be read nobody knows what a daemon has spent: nothing is asked, which is not ok', async () => {
  const away = { STATE_DATABASE_URL: 'postgres://127.0.0.1:1/nowhere' }
  const before = await requestsMade()
  const { code, printed } = await run(away)
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}service: not asked: the ledger cannot be read.* --ask-anyway/)
  expect(printed).not.toContain('ok       token')
  expect(await requestsMade()).toBe(before)
  const anyway = await run(away, false, true)
  expect(anyway.printed).toContain('ok       service')
  expect(await requestsMade()).toBe(before + 3)
})

test('databases that cannot be written are problems, and the service is not asked without a slot', async () => {
  await using _ = await readOnly(fixture.ledger.pool)
  const { code, printed } = await run()
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}ledger: the ledger’s database is read-only, so the daemons send nothing/)
  expect(printed).toMatch(/PROBLEM {2}outbox: the outbox’s database is read-only/)
  expect(printed).toMatch(/PROBLEM {2}service: not asked: the ledger cannot be written.* --ask-anyway/)
})

test('wrong credentials are the token’s problem', async () => {
  const { code, printed } = await run({ SERVICE_CLIENT_SECRET: 'wrong-secret' })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}token: .*SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET/)
  expect(printed).not.toContain('wrong-secret')
})

test('a service that cannot be reached is said to be so', async () => {
  const { code, printed } = await run({
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_AUTH_URL: 'http://127.0.0.1:1',
  })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}token: asking for a token: /)
})

test('a configuration with mistakes leaves with 2; what can be looked at is', async () => {
  const { code, printed } = await run({ SERVICE_BASE_URL: 'nonsense', MAX_IN_FLIGHT: 'many' })
  expect(code).toBe(2)
  expect(printed).toMatch(/PROBLEM {2}configuration: SERVICE_BASE_URL .*\n {11}MAX_IN_FLIGHT/)
  expect(printed).toContain('ok       ledger')
  expect(printed).not.toContain('token')
})

test('a variable whose name is a slip of one of ours is told, and is no problem: other programs have variables too', async () => {
  const { code, printed } = await run({ RATE_LIMIT_REQEUSTS: '50' })
  expect(code).toBe(0)
  expect(printed).toMatch(
    /ok {6} configuration: .*\n {11}note: the variable RATE_LIMIT_REQEUSTS is set, and outboxd does not read it; did you mean RATE_LIMIT_REQUESTS\?/,
  )
})

test('an OUTBOX_TABLE that is a slip is answered with the table that may be meant', async () => {
  const { code, printed } = await run({ OUTBOX_TABLE: 'outbx' })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}outbox: there is no table outbx: .*; did you mean "outbox"\?/)
})

test('a database that was not migrated, and one that has no outbox table, say what to run', async () => {
  await using empty = await createDatabase('template0')
  const { code, printed } = await run({ DATABASE_URL: empty.url })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}ledger: .*run `outboxd migrate` first/)
  expect(printed).toMatch(/PROBLEM {2}outbox: there is no table outbox: outboxd migrate --outbox/)
  // The service is asked all the same.
  expect(printed).toContain('ok       service')
})

test('an outbox without our columns, or without the trigger, is noticed', async () => {
  await fixture.ledger.pool.query(
    'create table lean (id bigint, type text, key text, payload jsonb, created_at timestamptz)',
  )
  const lean = await run({ OUTBOX_TABLE: 'lean' })
  expect(lean.code).toBe(1)
  expect(lean.printed).toContain('the table lean lacks status, transaction_id, error_code, error, updated_at')
  await fixture.ledger.pool.query('create table plain (like outbox including all)')
  const plain = await run({ OUTBOX_TABLE: 'plain' })
  expect(plain.code).toBe(0)
  expect(plain.printed).toContain('rows wait for the next sweep')
})

test('one row is told each state for a trial: what the table refuses is said, and taken back', async () => {
  await fixture.ledger.pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  expect((await run()).printed).toMatch(
    /ok {6} outbox: .*1 row waits; we wrote each state to row \d+ for a trial, and took it back/,
  )
  await fixture.ledger.pool.query(`alter table outbox add constraint known check (status <> 'uncertain')`)
  const { code, printed } = await run()
  await fixture.ledger.pool.query('alter table outbox drop constraint known')
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}outbox: row \d+ cannot be told that it is uncertain: SQLSTATE 23514: .*"known"/)
  expect((await fixture.ledger.pool.query('select status from outbox')).rows).toEqual([{ status: 'new' }])
})

test('a broken mapping file is shown with its place', async () => {
  const { code, printed } = await run({ MAPPINGS_DIR: mappingFiles({ 'bad.yaml': 'type: x\nendpont: data\n' }) })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}mappings: /)
  expect(printed).toContain('bad.yaml:2:1')
})

test('as JSON every finding is an object', async () => {
  const { printed } = await run({}, true)
  expect(JSON.parse(printed).map(({ what, ok }: { what: string; ok: boolean }) => [what, ok])).toEqual(
    ['configuration', 'ledger', 'outbox', 'mappings', 'token', 'service'].map((what) => [what, true]),
  )
})

test.each([
  [response(404, { code: 'NOT_FOUND' }), true, 'it takes our token'],
  [response(200, { status: 'pending' }), true, 'it takes our token'],
  [response(400, { code: 'E001' }), true, 'it takes our token'],
  [response(404, { title: 'Not Found', status: 404 }), true, 'it takes our token'],
  [response(404, '<html><h1>404 Not Found</h1>nginx</html>'), false, 'SERVICE_BASE_URL'],
  [response(404, 'default backend - 404'), false, 'we cannot tell'],
  [response(404, ''), false, 'we cannot tell'],
  [response(400, '<h1>400 The SSL certificate error</h1>'), false, 'no JSON'],
  [response(200, '<h1>Maintenance</h1>'), false, 'no JSON'],
  [response(401, ''), false, 'allow-list'],
  [response(403, ''), false, 'permission'],
  [response(302, ''), false, 'redirects are not followed'],
  [response(503, ''), false, '503'],
  [response(500, 'boom'), false, 'boom'],
  [response(405, ''), false, 'SERVICE_BASE_URL'],
  [noAnswer({ sent: true, cause: 'timeout' }), false, 'the connection was lost'],
])('%j is judged ok, with nothing to compare it with: %j', (answer, isOk, message) => {
  const finding = interpretCall(answer, null)
  expect(finding.isOk).toBe(isOk)
  expect(finding.message).toContain(message)
})

const springs = (path: string) => ({ timestamp: '2026-11-21T10:00:00.123Z', status: 404, error: 'Not Found', path })
const ofId = `/api/v1/data/${randomUUID()}`
const besideIt = `/api/v1/${randomUUID()}`

test.each([
  [
    'a gateway’s JSON',
    response(404, { message: 'no Route matched' }),
    response(404, { message: 'no Route matched' }),
    false,
  ],
  ['its words quote the address and the time', response(404, springs(ofId)), response(404, springs(besideIt)), false],
  ['the service’s own JSON', response(404, { title: 'no such transaction' }), response(404, springs(besideIt)), true],
  ['the service’s own under a code', response(404, { code: 'E001' }), response(404, { code: 'E001' }), true],
  ['the service’s own without a word', response(404, ''), response(404, springs(besideIt)), true],
  ['the service’s own without a word, before a page', response(404, ''), response(404, '<h1>404</h1>'), true],
  ['nobody’s word', response(404, ''), response(404, ''), false],
  ['a page is never its own', response(404, '<h1>404</h1>'), response(404, springs(besideIt)), false],
  ['nothing to compare: it was throttled', response(404, ''), response(429, ''), false],
  ['nothing to compare: it went wrong', response(404, { title: 'none' }), response(502, '<h1>502</h1>'), true],
])('a 404 beside that of an address that cannot exist: %s', (_, answer, beside, isOk) => {
  const finding = interpretCall(answer, beside)
  expect([finding.message, finding.isOk]).toEqual([finding.message, isOk])
  if (!isOk) expect(finding.message).toContain('SERVICE_BASE_URL')
})

async function answering(answer: (path: string) => { status: number; body: string }): Promise<string> {
  const server = createServer((request, reply) => {
    const { status, body } = answer(request.url ?? '')
    reply.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a gateway that answers every address with one JSON 404 is not taken for the service, and an empty 404 of the API alone is', async () => {
  const gateway = await answering(() => ({ status: 404, body: '{"message":"no Route matched with those values"}' }))
  const { code, printed } = await run({ SERVICE_BASE_URL: gateway })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}service: .*the same of an address that cannot exist.*SERVICE_BASE_URL/)
  const terse = await answering((path) =>
    path.startsWith('/api/v1/data/') ? { status: 404, body: '' } : { status: 404, body: '{"error":"Not Found"}' },
  )
  expect((await run({ SERVICE_BASE_URL: terse })).printed).toContain('ok       service: it takes our token')
})
