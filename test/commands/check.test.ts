import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { judgeClocks, judgeDurability } from '../../src/commands/check/servers.ts'
import { judgeUnknownTransactionAnswer } from '../../src/commands/check/service.ts'
import { command as check } from '../../src/commands/check.ts'
import { readConfig } from '../../src/config.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { raiseProblems } from '../../src/ledger/problems.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { digestFiles } from '../../src/outbox/digestFiles.ts'
import { setup as startSandbox } from '../sandbox/setup.ts'
import { noAnswer, response } from '../support/answers.ts'
import { openBreaker } from '../support/breaker.ts'
import { createDatabase } from '../support/database.ts'
import { setSettings, spendLimit } from '../support/ledger.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'
import { openForFile } from '../support/openForFile.ts'
import { readOnly } from '../support/readOnly.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { dataFile, mappingFiles, mappingsDir, openFixtureForFile, payloadOf } from './fixture.ts'

const fixture = openFixtureForFile()
const service = openForFile(() => startSandbox())
beforeEach(() => setSettings(fixture.ledger.pool, settingsOf(mappingsDir)))

/** The settings of a daemon with these mapping files. */
const settingsOf = (MAPPINGS_DIR: string) => ({
  ...readConfig(fixture.context(null, { ...serviceVariables(), MAPPINGS_DIR }).env).shared,
  ...digestFiles('outbox', loadMappings(MAPPINGS_DIR)),
})

const serviceVariables = () => ({ ...serviceEnvironment(service.sandbox.url), RATE_LIMIT_REQUESTS: '500' })

async function run(env: Record<string, string> = {}, json = false, askAnyway = false) {
  const context = fixture.context(null, {
    ...serviceVariables(),
    ...env,
  })
  const code = await check.action(context, { json, askAnyway })
  return { code, printed: context.printed(), messages: context.messages() }
}

test('if all is well, each line says ok (fsync off is a warning), and the three requests count', async () => {
  const { code, printed, messages } = await run()
  expect(printed).toMatch(
    /^ok {6} configuration: .*\nok {6} ledger: PostgreSQL \d+.*\nok {6} outbox: .*\nok {6} types: no row waits\nok {6} mappings: data to data, order to orders.*\nok {6} settings: variables and files are those of the ledger\nWARNING {2}durability: fsync .*\n {11}.*\nok {6} token: .*\nok {6} service: accepts the token and answers \(404 as expected, in \d+ ms\).*\nok {6} clocks: this host and the database, the service agree to 2 s\n$/,
  )
  expect(messages).toBe('No problem found; 1 warning.\n')
  expect(code).toBe(0)
  expect(await fixture.answeredRequests()).toBe(3)
})

describe('settings', () => {
  test('count from the first daemon on', async () => {
    await fixture.ledger.reset()
    expect((await run()).printed).toContain('ok       settings: no daemon has run yet')
  })

  test('that differ from the ledger’s are a warning, which says in what, and which count', async () => {
    const changed = mappingFiles({ 'data.yaml': dataFile.replace('maxLength: 10,', 'maxLength: 9,') })
    const { printed } = await run({ MAPPINGS_DIR: changed, KEY_ON_FAILURE: 'block' })
    expect(printed).toMatch(
      /WARNING {2}settings: .* the ledger’s, which count: KEY_ON_FAILURE is block, not continue; mapping of data differs; mapping of order is missing\./,
    )
  })
})

test('check asks the service even before the budget is set up', async () => {
  await fixture.ledger.reset()
  expect((await run()).code).toBe(0)
})

const requestsMade = async () => {
  const ledger = await fetch(`${service.sandbox.url}/_sandbox/ledger?limit=1000`)
  return ((await ledger.json()) as { rows: unknown[] }).rows.length
}

test('the ledger is away during `check`: the service is not asked', async () => {
  const away = { DATABASE_URL: 'postgres://127.0.0.1:1/nowhere' }
  const before = await requestsMade()
  const { code, printed } = await run(away)
  expect(code).toBe(1)
  expect(printed).toMatch(/- {8}service: not checked: the ledger cannot be read.* --ask-anyway/)
  expect(printed).toMatch(/DATABASE_URL at 127\.0\.0\.1:1\/nowhere cannot be used: .*\. Check that its server runs/)
  expect(printed).not.toContain('ok       token')
  expect(await requestsMade()).toBe(before)
  const anyway = await run(away, false, true)
  expect(anyway.printed).toContain('ok       service')
  expect(await requestsMade()).toBe(before + 3)
})

test('read-only databases are problems, and the service is not asked because no request can be counted', async () => {
  await using _ = await readOnly(fixture.ledger.pool)
  const { code, printed } = await run()
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}ledger: the database is read-only, so the daemons send nothing/)
  expect(printed).toMatch(/- {8}service: not checked: the ledger cannot be written.* --ask-anyway/)
})

test('wrong credentials are a problem of the token, and the service is not asked', async () => {
  const { code, printed } = await run({ SERVICE_CLIENT_SECRET: 'wrong-secret' })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}token: .*SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET/)
  expect(printed).toContain('-        service: not checked: there is no token')
  expect(printed).not.toContain('wrong-secret')
})

test('an unreachable service is a problem of the token', async () => {
  const { code, printed } = await run({
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_AUTH_URL: 'http://127.0.0.1:1',
  })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}token: asking for a token: /)
})

test('the help says that a mistake in a file exits with 1, and one in a variable with 2', () => {
  expect(check.help).toMatch(/is 2 if\s+a variable is .* is 1 if .* a mistake in outbox\.yaml or a mapping file/s)
})

test('an invalid configuration exits with 2, and the databases are still checked', async () => {
  const { code, printed } = await run({ SERVICE_BASE_URL: 'nonsense', MAX_IN_FLIGHT: 'many' })
  expect(code).toBe(2)
  expect(printed).toMatch(/PROBLEM {2}configuration: SERVICE_BASE_URL .*\n {11}MAX_IN_FLIGHT/)
  expect(printed).toContain('ok       ledger')
  expect(printed).not.toContain('token')
})

test('a variable whose name resembles one of outboxd’s is only a warning', async () => {
  const { code, printed } = await run({ RATE_LIMIT_REQEUSTS: '50' })
  expect(code).toBe(0)
  expect(printed).toMatch(
    /WARNING {2}configuration: .*\n {11}note: the variable RATE_LIMIT_REQEUSTS is not one of outboxd's; did you mean RATE_LIMIT_REQUESTS\?/,
  )
})

test('for a misspelt OUTBOX_TABLE, check suggests the table that is probably meant', async () => {
  const { code, printed } = await run({ OUTBOX_TABLE: 'outbx' })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}outbox: OUTBOX_TABLE: there is no table "outbx" .*did you mean "outbox"\?/)
})

test('for a database without ledger or outbox table, check says what to run', async () => {
  await using empty = await createDatabase('template0')
  const { code, printed } = await run({ DATABASE_URL: empty.url })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}ledger: .*Run `outboxd migrate` first/)
  expect(printed).toMatch(/PROBLEM {2}outbox: .*there is no table "outbox" .*create it with `outboxd migrate --outbox`/)
  // The service is still asked.
  expect(printed).toContain('ok       service')
})

test('an outbox without our columns is a problem, and one without the trigger is reported', async () => {
  await fixture.ledger.pool.query(
    'create table lean (id bigint, type text, key text, payload jsonb, created_at timestamptz)',
  )
  const lean = await run({ OUTBOX_TABLE: 'lean' })
  expect(lean.code).toBe(1)
  expect(lean.printed).toContain('the table "public"."lean" has no column "status"')
  await fixture.ledger.pool.query('create table plain (like outbox including all)')
  const plain = await run({ OUTBOX_TABLE: 'plain' })
  expect(plain.code).toBe(0)
  expect(plain.printed).toContain('rows wait up to a second')
})

test('check writes each state to one row and rolls back, and reports a state that the table refuses', async () => {
  await fixture.ledger.pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  expect((await run()).printed).toMatch(
    /ok {6} outbox: .*1 row waits; writing each state to row \d+ works \(tried and rolled back\)/,
  )
  await fixture.ledger.pool.query(`alter table outbox add constraint known check (status <> 'uncertain')`)
  const { code, printed } = await run()
  await fixture.ledger.pool.query('alter table outbox drop constraint known')
  expect(code).toBe(1)
  expect(printed).toMatch(
    /PROBLEM {2}outbox: the state uncertain cannot be written to row \d+: SQLSTATE 23514: .*"known"/,
  )
  expect((await fixture.ledger.pool.query('select status from outbox')).rows).toEqual([{ status: 'new' }])
})

test('a broken mapping file is a problem, with file, line and column', async () => {
  const { code, printed } = await run({ MAPPINGS_DIR: mappingFiles({ 'bad.yaml': 'type: x\nendpont: data\n' }) })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}mappings: /)
  expect(printed).toContain('bad.yaml:2:1')
})

test('--json prints an object for each finding', async () => {
  const { printed } = await run({}, true)
  expect(JSON.parse(printed).map(({ what, ok }: { what: string; ok: boolean }) => [what, ok])).toEqual(
    [
      ...['configuration', 'ledger', 'outbox', 'types', 'mappings', 'settings', 'durability'],
      ...['token', 'service', 'clocks'],
    ].map((what) => [what, true]),
  )
})

test.each([
  [response(404, { code: 'NOT_FOUND' }), true, 'accepts the token'],
  [response(200, { status: 'pending' }), true, 'accepts the token'],
  [response(400, { code: 'E001' }), true, 'accepts the token'],
  [response(404, { title: 'Not Found', status: 404 }), true, 'accepts the token'],
  [response(404, '<html><h1>404 Not Found</h1>nginx</html>'), false, 'SERVICE_BASE_URL'],
  [response(404, 'default backend - 404'), false, 'may be from a proxy'],
  [response(404, ''), false, 'may be from a proxy'],
  [response(400, '<h1>400 The SSL certificate error</h1>'), false, 'a web page'],
  [response(200, '<h1>Maintenance</h1>'), false, 'a maintenance page'],
  [response(401, ''), false, 'allow-list'],
  [response(403, ''), false, 'permission'],
  [response(302, ''), false, 'redirects are not followed'],
  [response(503, ''), false, '503'],
  [response(500, 'boom'), false, 'boom'],
  [response(405, ''), false, 'SERVICE_BASE_URL'],
  [noAnswer({ sent: true, cause: 'timeout' }), false, 'the connection was lost'],
])('the answer %j alone counts as ok: %j', (answer, isOk, message) => {
  const finding = judgeUnknownTransactionAnswer(answer, null)
  expect(finding.mark).toBe(isOk ? 'ok' : 'problem')
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
  [
    'a gateway’s JSON that quotes the address and the time',
    response(404, springs(ofId)),
    response(404, springs(besideIt)),
    false,
  ],
  ['the service’s own JSON', response(404, { title: 'no such transaction' }), response(404, springs(besideIt)), true],
  ['the service’s own JSON with a code', response(404, { code: 'E001' }), response(404, { code: 'E001' }), true],
  ['the service’s own empty answer', response(404, ''), response(404, springs(besideIt)), true],
  ['the service’s own empty answer, and a page elsewhere', response(404, ''), response(404, '<h1>404</h1>'), true],
  ['an empty answer everywhere', response(404, ''), response(404, ''), false],
  ['a page, which is never the service’s own', response(404, '<h1>404</h1>'), response(404, springs(besideIt)), false],
  ['an empty answer, and the comparison was throttled', response(404, ''), response(429, ''), false],
  [
    'the service’s own JSON, and the comparison failed',
    response(404, { title: 'none' }),
    response(502, '<h1>502</h1>'),
    true,
  ],
])('check compares the answer for an unknown id with that of an impossible address: %s', (_, answer, beside, isOk) => {
  const finding = judgeUnknownTransactionAnswer(answer, beside)
  expect([finding.message, finding.mark]).toEqual([finding.message, isOk ? 'ok' : 'problem'])
  if (!isOk) expect(finding.message).toContain('SERVICE_BASE_URL')
})

async function answering(answer: (path: string) => { status: number; body: string }): Promise<string> {
  const server = createServer((request, reply) => {
    const { status, body } = answer(request.url ?? '')
    reply.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  const listening = await listenOnLoopback(server)
  onTestFinished(() => listening[Symbol.asyncDispose]())
  return listening.url
}

test('if every address answers the same 404, check reports a problem', async () => {
  const gateway = await answering(() => ({ status: 404, body: '{"message":"no Route matched with those values"}' }))
  const { code, printed } = await run({ SERVICE_BASE_URL: gateway })
  expect(code).toBe(1)
  expect(printed).toMatch(/PROBLEM {2}service: .*an impossible address gets the same answer.*SERVICE_BASE_URL/)
  const terse = await answering((path) =>
    path.startsWith('/api/v1/data/') ? { status: 404, body: '' } : { status: 404, body: '{"error":"Not Found"}' },
  )
  expect((await run({ SERVICE_BASE_URL: terse })).printed).toContain('ok       service: accepts the token')
})

test('what was not checked is marked "-", and null in JSON', async () => {
  const { code, printed, messages } = await run({ DATABASE_URL: 'nonsense' })
  expect(code).toBe(2)
  expect(printed).toMatch(/^- {8}ledger: not checked: the configuration is wrong$/m)
  expect(printed).toMatch(/^- {8}service: not checked: the configuration is wrong$/m)
  expect(messages).toBe('1 problem; not checked: ledger, outbox, types, mappings, durability, service, clocks.\n')
  const asJson = await run({ DATABASE_URL: 'nonsense' }, true)
  expect(JSON.parse(asJson.printed).map(({ ok }: { ok: boolean | null }) => ok)).toEqual([
    false,
    ...Array(7).fill(null),
  ])
})

test('open problems that daemons reported are a warning', async () => {
  await raiseProblems(fixture.ledger.pool, [
    { kind: 'row_conflict', subject: '5', detail: 'another row', retryInMs: null },
    { kind: 'row_conflict', subject: '6', detail: 'another row', retryInMs: null },
  ])
  const { code, printed, messages } = await run()
  expect(printed).toContain(
    'WARNING  problems: daemons report open problems (row_conflict 2): `outboxd status` explains them',
  )
  expect([code, messages]).toEqual([0, 'No problem found; 2 warnings.\n'])
})

test('a part of the daemon that keeps failing is a problem', async () => {
  const { pool } = fixture.ledger
  const daemon = { id: randomUUID(), version: '1', host: 'erp-1', settings: {} }
  const problem = { kind: 'loop_failing', part: 'capture', detail: 'No space left on device', ageMs: 0 } as const
  await writeHeartbeat(pool, daemon, { problems: [problem] })
  const { code, printed } = await run()
  expect(printed).toMatch(/^PROBLEM {2}problems: daemons report open problems \(loop_failing 1\)/m)
  expect(code).toBe(1)
})

test('a pause of all sending is a warning with its cause, the latest first', async () => {
  await openBreaker(fixture.ledger.pool, { cause: 'unreachable', detail: 'why unreachable' })
  await fixture.ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'why operator')`)
  const { code, printed } = await run()
  expect(printed).toMatch(/paused \(operator\): why operator\n.*paused \(unreachable\): why unreachable\n/)
  expect(code).toBe(0)
})

test('a restored ledger is a problem, both before and after a daemon has noticed it', async () => {
  await fixture.end({ state: 'queued' })
  const { pool } = fixture.ledger
  await pool.query('update outboxd.ledger set table_oid = 1')
  expect((await run()).printed).toMatch(/PROBLEM {2}ledger: the ledger’s tables were created again.*recover --dry-run/)
  await pool.query('update outboxd.ledger set lost_at = now()')
  expect((await run()).printed).toMatch(/PROBLEM {2}ledger: a daemon has found that .*recover --dry-run/)
})

test('a ledger without its row is a problem: it may be restored in part', async () => {
  const { pool } = fixture.ledger
  await pool.query('create table kept as select * from outboxd.ledger; delete from outboxd.ledger')
  expect((await run()).printed).toMatch(/PROBLEM {2}outbox: .*outboxd.ledger is gone.*restored in part/)
  const { rows } = await pool.query<{ columns: string }>(
    `select string_agg(attname, ', ') as columns from pg_attribute
     where attrelid = 'outboxd.ledger'::regclass and attnum > 0 and attgenerated = ''`,
  )
  const columns = rows[0]?.columns
  await pool.query(`insert into outboxd.ledger (${columns}) select ${columns} from kept; drop table kept`)
})

test('if no request is free, the service is not asked, which is not a problem', async () => {
  await spendLimit(fixture.ledger.pool)
  const { code, printed, messages } = await run()
  expect(printed).toMatch(
    /^- {8}service: not checked: no request of the budget was free for 10 s, because a daemon or another client uses them all/m,
  )
  expect(code).toBe(0)
  expect(messages).toBe('No problem found; 1 warning; not checked: service.\n')
})

test('a mapping whose body does not fit the interface is only a warning', async () => {
  const dir = mappingFiles({
    'data.yaml': `type: data\nendpoint: data\nfields:\n  c: { from: c, type: string, required: true }\nbody: { customerId: "\${c}", dta: {} }\n`,
  })
  const { code, printed, messages } = await run({ MAPPINGS_DIR: dir })
  expect(code).toBe(0)
  expect(printed).toMatch(
    /^WARNING {2}mapping of data: customerId is c \(string\), and .*maxLength: 10\)\n {11}data is not in .*"dta"\?$/m,
  )
  expect(messages).toBe('No problem found; 3 warnings.\n')
})

test('a type without mapping file: `check` counts its rows', async () => {
  await fixture.ledger.pool.query(
    `insert into outbox (type, payload) values ('dat', '{}'), ('dat', '{}'), ('data', '{}')`,
  )
  const { code, printed } = await run()
  expect(code).toBe(1)
  expect(printed).toContain(
    'PROBLEM  types: rows of type "dat" have no mapping file in MAPPINGS_DIR and will be rejected; waiting: 2; did you mean "data"?',
  )
  await fixture.ledger.pool.query(`delete from outbox where type = 'dat'`)
  expect((await run()).printed).toContain('ok       types: each type has a mapping file: data')
})

test('a constant type without a mapping file is a problem even before a row exists', async () => {
  const outbox = 'table: outbox\nid: id\ntype: { constant: invoice }\npayload: payload\nstate: none\nsequence: id\n'
  const dir = mappingFiles({
    'outbox.yaml': outbox,
    'order.yaml': readFileSync(join(import.meta.dirname, '../../mappings/order.yaml'), 'utf8'),
  })
  expect((await run({ MAPPINGS_DIR: dir })).printed).toContain(
    'PROBLEM  types: rows of type "invoice" have no mapping file',
  )
})

test('a field that reads a column that outbox.yaml does not list is a problem even before a row exists', async () => {
  const columns = '[id, customerId, orderDate, amount, field2]'
  const outbox = `table: outbox\nid: id\ntype: { constant: data }\npayload: { columns: ${columns} }\nstate: none\n`
  const wrong = dataFile.replace('from: customerId', 'from: customerid')
  const { code, printed } = await run({ MAPPINGS_DIR: mappingFiles({ 'outbox.yaml': outbox, 'data.yaml': wrong }) })
  expect(code).toBe(1)
  expect(printed).toMatch(
    /PROBLEM {2}mapping of data: customer_id reads customerid, but the payload of outbox.yaml has only id, customerId, orderDate, amount, field2; did you mean "customerId"\?, so each record will be rejected\n +field1 reads field1, but .*, so the value is always missing/,
  )
})

test('check reports waiting rows that do not map: some are a warning, all are a problem', async () => {
  await fixture.row(payloadOf())
  expect((await run()).printed).toContain('ok       rows: 1 of 1 waiting row maps')
  const id = await fixture.row(payloadOf({ customerId: '"C1-is-far-too-long"' }))
  const some = await run()
  expect(some.code).toBe(0)
  expect(some.printed).toContain(
    `WARNING  rows: 1 of 2 waiting rows map. \`outboxd map --outbox ${id}\` says why row ${id} will be rejected`,
  )
  await fixture.ledger.pool.query('delete from outbox where id <> $1', [id])
  const none = await run()
  expect(none.code).toBe(1)
  expect(none.printed).toContain('PROBLEM  rows: 0 of 1 waiting row maps')
})

test('check warns of wrong money in the tables that a query reads, and of a table without an index of waiting rows', async () => {
  const { pool } = fixture.ledger
  onTestFinished(async () => void (await pool.query('drop table bill')))
  await pool.query(`create table bill (id int primary key, total real, cur text, sent_at timestamptz);
    insert into bill values (1, 500, 'CHF', null)`)
  const mapping = `type: bill\nendpoint: data\nsource: select h.* from bill h where h.id = any($1)
fields: { total: { from: total, type: "decimal(10,2)" } }\nbody: { total: "\${total}" }\n`
  const ours = await run({ MAPPINGS_DIR: mappingFiles({ 'bill.yaml': mapping }) })
  expect(ours.printed).toMatch(
    /WARNING {2}money of bill: total reads total, which is real\. .*\n +"cur" has currencies, and neither/,
  )
  expect(ours.printed).not.toContain('index: ')
  const outbox = `table: bill\nid: id\ntype: { constant: bill }\nstate: { timestamp: sent_at, set: [completed] }\n`
  const theirs = await run({ MAPPINGS_DIR: mappingFiles({ 'bill.yaml': mapping, 'outbox.yaml': outbox }) })
  expect(theirs.printed).toMatch(
    /WARNING {2}index: .*create index concurrently on "public"\."bill" \(id\) where sent_at is null/,
  )
  expect(theirs.printed).toMatch(/WARNING {2}money of bill: /)
})

test('of waiting rows with large payloads, check reads as many as fit into 16 MB', async () => {
  const pad = JSON.stringify('x'.repeat(6_000_000))
  for (let i = 0; i < 3; i++) await fixture.row(payloadOf({ pad }))
  await setSettings(fixture.ledger.pool, { PAYLOAD_MAX_BYTES: '10000000' })
  const { code, printed } = await run()
  expect(printed).toContain('ok       rows: 2 of the first 2 waiting rows map')
  expect(code).toBe(0)
})

test('a broken or misnamed outbox.yaml is named, and an empty folder is named without a line number', async () => {
  const broken = await run({ MAPPINGS_DIR: mappingFiles({ 'outbox.yaml': 'table: [', 'data.yaml': dataFile }) })
  expect(broken.code).toBe(1)
  expect(broken.printed).toContain('PROBLEM  outbox: outbox.yaml cannot be used\n')
  const misnamed = await run({ MAPPINGS_DIR: mappingFiles({ 'outbox.yml': 'table: x', 'data.yaml': dataFile }) })
  expect(misnamed.code).toBe(1)
  expect(misnamed.printed).toMatch(
    /PROBLEM {2}outbox: .*\n.*outbox\.yml: the file is not read: rename it to outbox\.yaml/,
  )
  const empty = mappingFiles({})
  expect((await run({ MAPPINGS_DIR: empty })).printed).toContain(`${empty}: there is no mapping file`)
})

test('check prints the grants that a role lacks, and after they are run all is well', async () => {
  const { pool, url } = fixture.ledger
  await pool.query(`create role "Few Rights" login password 'x'`)
  onTestFinished(async () => void (await pool.query('drop owned by "Few Rights"; drop role "Few Rights"')))
  await pool.query(`revoke all on schema public from public`)
  onTestFinished(async () => void (await pool.query('grant usage on schema public to public')))
  const env = { DATABASE_URL: Object.assign(new URL(url), { username: 'Few%20Rights', password: 'x' }).href }
  const pasted: string[] = []
  for (let round = 0; round < 4; round++) {
    const { printed } = await run(env)
    const grants = printed
      .split('\n')
      .filter((line) => /^ +grant .*;$/.test(line))
      .map((line) => line.trim())
    for (const grant of grants) await pool.query(grant)
    pasted.push(...grants)
  }
  expect(pasted).toContain('grant usage on schema outboxd to "Few Rights";')
  expect(pasted).toContain('grant usage on schema public to "Few Rights";')
  expect(pasted).toContain(
    'grant update (status, transaction_id, error_code, error, updated_at) on public.outbox to "Few Rights";',
  )
  const { code, printed, messages } = await run(env)
  expect(printed).toMatch(/^ok {6} ledger/m)
  expect(printed).toMatch(/^ok {6} outbox/m)
  expect(messages).toBe('No problem found; 1 warning.\n')
  expect(code).toBe(0)
})

test('a service whose Date header is a minute ahead is a problem of the clocks', async () => {
  const server = createServer((request, reply) => {
    reply.setHeader('date', new Date(Date.now() + 60_000).toUTCString())
    const token = request.url?.endsWith('/oauth/token')
    reply.writeHead(token ? 200 : 404, { 'content-type': 'application/json' })
    reply.end(token ? '{"access_token":"x","token_type":"Bearer","expires_in":3600}' : '{"code":"E001"}')
  })
  await using listening = await listenOnLoopback(server)
  const { url } = listening
  const { code, printed } = await run({ SERVICE_BASE_URL: url, SERVICE_AUTH_URL: url })
  expect(printed).toMatch(
    /^PROBLEM {2}clocks: the clock of the service is (5[5-9]|6[0-4])(\.\d+)? s ahead of the clock of this host$/m,
  )
  expect(code).toBe(1)
})

const reading = (whose: string, ms: number, doubtMs = 0) => ({ whose, leastMs: ms, mostMs: ms + doubtMs })

test.each([
  ['within the uncertainty of the measurement', [reading('a', -9_000, 10_000)], 'ok'],
  ['a second apart', [reading('a', 1_000), reading('b', -900)], 'ok'],
  ['three seconds behind', [reading('a', -3_000)], 'warning'],
  ['six seconds ahead', [reading('a', 6_000)], 'problem'],
  ['that were not read', [], 'not-asked'],
] as const)('clocks %s', (_, readings, mark) => {
  expect(judgeClocks(readings).mark).toBe(mark)
})

test('a server that may lose commits in a power cut is a warning, and check says what follows a failover', () => {
  const off = (names: string[], isSynchronous = false, standby: 'none' | 'synchronous' = 'none') =>
    judgeDurability({ off: names, isSynchronous }, standby)
  expect(off([])).toMatchObject({
    mark: 'ok',
    message: expect.stringMatching(/survives a power cut\. A failover stops sending until `outboxd recover`, .*$/),
  })
  expect(off([], true)).toMatchObject({
    mark: 'ok',
    message: expect.stringContaining('set LEDGER_STANDBY=synchronous'),
  })
  expect(off([], true, 'synchronous')).toMatchObject({ mark: 'ok', message: expect.stringContaining('by itself') })
  expect(off([], false, 'synchronous')).toMatchObject({
    mark: 'problem',
    message: expect.stringMatching(/wait for no synchronous standby .* Nothing is sent/),
  })
  expect(off(['fsync', 'full_page_writes'])).toMatchObject({
    mark: 'warning',
    message: expect.stringMatching(/^fsync and full_page_writes turned off .*alter system set fsync = on;/),
  })
  expect(judgeDurability(null, 'none').mark).toBe('not-asked')
})
