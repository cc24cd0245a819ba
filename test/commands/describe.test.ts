import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { command as describe } from '../../src/commands/describe.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { explainError } from '../../src/operations/explainError.ts'
import { loadOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { beginTransaction } from '../../src/postgres/database.ts'
import { type FileProblem, FilesInvalid } from '../../src/yaml/yamlDocument.ts'
import { asInstaller, installCapture } from '../support/changeCapture.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'
import { exampleDdl } from '../support/exampleDdl.ts'
import { startProgram } from '../support/program.ts'
import { mappingFiles } from './fixture.ts'

/** A database with these tables. */
async function erp(ddl: string) {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(ddl)
  return { pool: database.pool, url: database.url, run: runOn(database.url) }
}

const runOn =
  (url: string) =>
  async (table: string, options: OptionsOf<typeof describe> = {}, mappingsDir = emptyFolder()) => {
    const context = testContext({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir })
    const code = await describe.action(context, table, options)
    return { code, mappingsDir, printed: context.printed(), messages: context.messages() }
  }

const emptyFolder = () => mkdtempSync(join(tmpdir(), 'outboxd-describe-'))

const { salesOrder } = exampleDdl

test('for a business table, describe proposes all but the filter, and the file loads only once that is filled in', async () => {
  const { pool, run } = await erp(salesOrder)
  await pool.query(`insert into sales_order (customer_no, status, net_amount, ordered_at)
    select 'C1', case when n % 2 = 0 then 'draft' else 'released' end, 1, now() from generate_series(1, 9) n`)
  const { code, printed, messages, mappingsDir } = await run('sales_order')
  expect(code).toBe(0)
  expect(readdirSync(mappingsDir)).toEqual([])
  expect(printed).toContain(`# --- ${join(mappingsDir, 'outbox.yaml')} ---`)
  expect(printed).toMatch(/^id: id +# bigint, the primary key$/m)
  expect(printed).toMatch(/^type: { constant: sales_order }/m)
  expect(printed).toMatch(/^key: customer_no /m)
  expect(printed).toMatch(/^created_at: created_at /m)
  expect(printed).toMatch(/^ {4}net_amount: net_amount +# numeric\(12,2\)$/m)
  expect(printed).toMatch(/^ {2}timestamp: synced_at /m)
  expect(printed).toMatch(/^ {2}sync_error: error /m)
  expect(printed).not.toMatch(/^ {4}(synced_at|sync_error):/m) // columns that outboxd writes are not in the payload
  expect(printed).toMatch(
    /^filter: +# FILL IN: a condition such as status = 'released'.* The column has 'draft', 'released'$/m,
  )
  expect(printed).toMatch(/^ {2}total_amount: { from: net_amount, type: "decimal\(10,2\)", required: true }/m)
  expect(messages).toMatch(/^to fill in: .*outbox\.yaml:\d+ a condition such as status/m)

  await run('sales_order', { write: true }, mappingsDir)
  expect(() => loadOutboxFile(mappingsDir)).toThrow(
    /outbox\.yaml:\d+:\d+ FILL IN is still there: a condition such as status = 'released'/,
  )
  expect([...loadMappings(mappingsDir).keys()]).toEqual(['sales_order'])
})

test('if a file exists, describe names it and writes nothing', async () => {
  const { run } = await erp(salesOrder)
  const dir = mappingFiles({ 'sales_order.yaml': 'mine: true\n' })
  const { code, messages } = await run('sales_order', { write: true }, dir)
  expect(code).toBe(1)
  expect(messages).toContain(`nothing was written, because of existing files: ${join(dir, 'sales_order.yaml')}.`)
  expect(readdirSync(dir)).toEqual(['sales_order.yaml'])
  expect(readFileSync(join(dir, 'sales_order.yaml'), 'utf8')).toBe('mine: true\n')
})

test('--write creates the folder if it does not exist', async () => {
  const { run } = await erp(salesOrder)
  const dir = join(emptyFolder(), 'etc', 'mappings')
  expect((await run('sales_order', { write: true }, dir)).code).toBe(0)
  expect(readdirSync(dir).sort()).toEqual(['outbox.yaml', 'sales_order.yaml'])
})

test('without MAPPINGS_DIR, describe writes to ./mappings, even if the service is on loopback', async () => {
  const { url } = await erp(salesOrder)
  const folder = emptyFolder()
  const env = { DATABASE_URL: url, SERVICE_BASE_URL: 'http://127.0.0.1:8080' }
  await using program = startProgram({ args: ['describe', 'sales_order', '--write'], folder, env })
  expect(await program.ended()).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Written: ${join(folder, 'mappings', 'outbox.yaml')}`),
  })
  expect(readdirSync(join(folder, 'mappings')).sort()).toEqual(['outbox.yaml', 'sales_order.yaml'])
})

test('describe never writes into a package below node_modules, even through a symbolic link', async () => {
  const { run } = await erp(salesOrder)
  const folder = emptyFolder()
  const installed = join(folder, 'node_modules', 'outboxd', 'mappings')
  mkdirSync(installed, { recursive: true })
  symlinkSync(installed, join(folder, 'mappings'))
  for (const dir of [installed, join(installed, 'mine'), join(folder, 'mappings')]) {
    const { code, messages } = await run('sales_order', { write: true }, dir)
    expect(code).toBe(2)
    expect(messages).toContain('is inside an installed package')
  }
  expect(existsSync(join(installed, 'mine'))).toBe(false)
  expect(readdirSync(installed)).toEqual([])
})

test('loading reports each place to fill in with the words of describe, and no other problem', async () => {
  const { run } = await erp(
    'create table shop_order (id bigint primary key, total numeric(10,2), note text, sent boolean not null default false)',
  )
  const { mappingsDir, messages } = await run('shop_order', { write: true })
  const wanted = messages.split('\n').flatMap((line) => /^to fill in: (\S+:\d+) (.*)$/.exec(line)?.slice(1, 3) ?? [])
  expect(wanted.length).toBeGreaterThan(4)
  const problemsOf = (load: (dir: string) => unknown): readonly FileProblem[] => {
    try {
      load(mappingsDir)
    } catch (error) {
      if (error instanceof FilesInvalid) return error.problems
      throw error
    }
    return []
  }
  const problems = [...problemsOf(loadOutboxFile), ...problemsOf(loadMappings)]
  const told = problems.flatMap(({ file, line, message }) => [
    `${file}:${line}`,
    message.replace('FILL IN is still there: ', ''),
  ])
  expect(told).toEqual(wanted)
})

test('--json prints the files, the places to fill in and the warnings', async () => {
  const { run } = await erp(salesOrder)
  const { printed } = await run('sales_order', { json: true })
  const json = JSON.parse(printed)
  expect(Object.keys(json)).toEqual(['table', 'files', 'fillIn', 'warnings', 'written'])
  expect(json).toMatchObject({ table: 'public.sales_order', warnings: [], written: [] })
  expect(json.files).toHaveLength(2)
  expect(json.fillIn[0]).toMatchObject({ file: json.files[0].file, line: expect.any(Number) })
})

test('for an unknown table, describe suggests a similar one and exits with 3; an invalid name exits with 2', async () => {
  const { run } = await erp(`${salesOrder}; create schema erp; create table erp.invoice (id int)`)
  for (const [name, meant] of [
    ['sales_ordr', 'sales_order'],
    ['SALES_ORDER', 'sales_order'],
    ['invoice', 'erp.invoice'],
  ] as const) {
    const { code, messages } = await run(name)
    expect({ code, messages }).toEqual({ code: 3, messages: expect.stringContaining(`did you mean "${meant}"?`) })
  }
  expect(JSON.parse((await run('sales_ordr', { json: true })).printed)).toEqual({ table: null, nearest: 'sales_order' })
  expect(await run('a.b.c')).toMatchObject({ code: 2, messages: expect.stringContaining(`outboxd describe '"a.b"'`) })
})

test('describe handles a header and lines whose names have dots and quotes', async () => {
  const { run, pool } = await erp(`create table "sales.v2" (id int primary key, number text, total numeric(12,2));
    create table "sales.v2 ""line""" (id int primary key, sale int references "sales.v2", article text, quantity int);
    insert into "sales.v2" values (1, 'S1', 5); insert into "sales.v2 ""line""" values (1, 1, 'A1', 2)`)
  const { code, mappingsDir } = await run('"sales.v2"', { write: true })
  expect(code).toBe(0)
  const read = (end: string) => {
    const file = readdirSync(mappingsDir).find((name) => name.endsWith(end)) ?? ''
    return readFileSync(join(mappingsDir, file), 'utf8')
  }
  const { rows } = await pool.query(parse(read('.yaml')).source, [[1]])
  expect(rows).toMatchObject([{ id: 1, items: [{ article: 'A1', quantity: 2 }] }])
  await pool.query('create table outbox (id bigint, type text, key text, payload jsonb)')
  await installCapture(pool)
  await asInstaller(pool, read('.capture.sql').replace('FILL_IN', 'null'))
  await pool.query(`update "sales.v2 ""line""" set quantity = 3`)
  expect((await pool.query('select payload from outbox')).rows).toEqual([
    { payload: { document: 'public."sales.v2"', id: 1 } },
  ])
})

test('names with upper case, blanks and quotes are written so that the loader reads them back', async () => {
  const { run } = await erp(`create table "Sales Order" (
    "Order No" text primary key, "Customer No" text not null, "Total" numeric(14,4) not null, "Ordered At" timestamp not null,
    "Yes" text, "a ""b""" text, "Synced At" timestamptz)`)
  const { code, mappingsDir, messages, printed } = await run('public."Sales Order"', { write: true })
  expect({ code, printed }).toEqual({ code: 0, printed: '' })
  const file = join(mappingsDir, 'outbox.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^created_at: .*FILL IN.*$/m, 'created_at: Ordered At'))
  expect(loadOutboxFile(mappingsDir)).toMatchObject({
    table: 'Sales Order',
    id: 'Order No',
    key: 'Customer No',
    state: { kind: 'timestamp', column: 'Synced At' },
    payload: {
      columns: new Map([
        ['Order_No', 'Order No'],
        ['Customer_No', 'Customer No'],
        ['Total', 'Total'],
        ['Ordered_At', 'Ordered At'],
        ['Yes', 'Yes'],
        ['a_b_', 'a "b"'],
      ]),
    },
  })
  expect(messages).toMatch(
    /to fill in: .*Sales_Order\.yaml:\d+ timezone: the zone of these times, such as UTC or Europe\/Berlin/,
  )
  expect(() => loadMappings(mappingsDir)).toThrow(/time ?zone/)
})

test.each([
  [
    'no primary key',
    'create table t (a int, payload jsonb)',
    /has no column that is unique and not null.* add column outbox_id bigint/,
  ],
  [
    'a composite key',
    'create table t (a int, b int, payload jsonb, primary key (a, b))',
    /has no column that is unique and not null/,
  ],
  [
    'a unique column that may be NULL',
    'create table t (a int unique, payload jsonb)',
    /has no column that is unique and not null.*Make a column unique/,
  ],
  [
    'partitions by another column',
    `create table t (id bigint, day date, payload jsonb, primary key (id, day)) partition by range (day)`,
    /has partitions or inheriting tables, so no index can show/,
  ],
  [
    'tables that inherit from it',
    'create table t (id int primary key, payload jsonb); create table heir () inherits (t)',
    /has partitions or inheriting tables, so no index can show/,
  ],
])('%s: the id is left to fill in, and a warning says why', async (_, ddl, warning) => {
  const { run } = await erp(ddl)
  const { code, messages, mappingsDir } = await run('t', { write: true })
  expect(code).toBe(0)
  expect(messages).toMatch(warning)
  expect(messages).toMatch(/to fill in: .*outbox\.yaml/)
  expect(() => loadOutboxFile(mappingsDir)).toThrow(/FILL IN is still there: /)
})

test('row-level security and missing rights are warnings, and columns that cannot hold our values are left out', async () => {
  const { pool, url, run } =
    await erp(`create table t (id bigint generated always as identity primary key, type text, payload jsonb,
      status varchar(4) default 'new', transaction_id uuid, error text not null default '');
    alter table t enable row level security;
    create table w (id bigint primary key, type text, payload jsonb, sent_at timestamptz);
    create role reader_of_t login password 'secret'; grant select on t, w to reader_of_t`)
  const { printed } = await run('t')
  expect(printed).toMatch(/^ {2}new: new /m)
  expect(printed).not.toMatch(/^ {2}(queued|completed|transaction_id|error):/m)
  const asReader = new URL(url)
  asReader.username = 'reader_of_t'
  asReader.password = 'secret'
  const reader = await runOn(asReader.href)('t')
  expect(reader.messages).toMatch(/has row-level security, and no policy lets reader_of_t select rows: create policy/)
  expect(reader.messages).toContain('no policy lets reader_of_t update rows')
  const ofW = await runOn(asReader.href)('w')
  expect(ofW.messages).toMatch(
    /warning: the database role lacks permissions. The owner grants them with:\n *grant update \(sent_at\) on public\.w to/,
  )
  expect(ofW.messages).toContain('grant update (sent_at) on public.w to reader_of_t;')
  await pool.query('drop owned by reader_of_t; drop role reader_of_t')
})

test('if no column shows what was sent, a warning says that every row is sent and names adopt --start now', async () => {
  const { run } = await erp(
    'create table t (id bigint generated always as identity primary key, type text, payload jsonb)',
  )
  const { messages, printed } = await run('t')
  expect(printed).toMatch(/^state: none/m)
  expect(messages).toMatch(/every row in the table is sent.*outboxd adopt --start now/)
})

test.each([
  [`status text not null default 'pending'`, { new: ['pending'], queued: 'queued', completed: 'completed' }],
  [
    `state text not null check (state in ('OPEN', 'BUSY', 'SENT', 'ERROR'))`,
    { new: ['OPEN'], queued: 'BUSY', completed: 'SENT', failed: 'ERROR', rejected: 'ERROR' },
  ],
  [`status mood`, { new: ['pending'], queued: 'in_progress', completed: 'done', failed: 'failed', rejected: 'failed' }],
])('the words of a status column, %s, are used in the proposed state', async (column, { new: waiting, ...words }) => {
  const { run } = await erp(`create type mood as enum ('pending', 'in_progress', 'done', 'failed');
    create table t (id bigint primary key, type text, payload jsonb, ${column})`)
  const { mappingsDir } = await run('t', { write: true })
  const file = loadOutboxFile(mappingsDir)
  expect(file?.state).toMatchObject({ kind: 'value', waiting })
  expect(file?.state?.kind === 'value' && Object.fromEntries(file.state.values)).toMatchObject(words)
})

test.each([
  ['sent boolean not null default false', ['false'], 'true'],
  ['is_processed boolean', ['false', null], 'true'],
  ['published smallint default 0', ['0', null], '1'],
])('a flag, %s, is set when the row is captured', async (column, waiting, done) => {
  const { run } = await erp(`create table t (id bigint primary key, type text, payload jsonb, ${column})`)
  const { mappingsDir } = await run('t', { write: true })
  expect(loadOutboxFile(mappingsDir)?.state).toMatchObject({
    waiting,
    values: new Map([
      ['queued', done],
      ['rejected', done],
    ]),
  })
})

test('each type in the rows gets a mapping file, unless it has one already', async () => {
  const { pool, run } = await erp('create table t (id bigint primary key, type text, payload jsonb)')
  await pool.query(`insert into t values (1, 'data', '{}'), (2, 'Order/EU', '{"customerId": "x", "items": []}')`)
  const dir = mappingFiles({ 'data.yaml': readFileSync('mappings/data.yaml', 'utf8') })
  const { code } = await run('t', { write: true }, dir)
  expect(code).toBe(0)
  expect(readdirSync(dir).sort()).toEqual(['Order-EU.yaml', 'data.yaml', 'outbox.yaml'])
  expect(loadMappings(dir).get('Order/EU')?.endpoint).toBe('orders')
})

test('if the table is locked, describe fails soon and names the session that holds the lock', async () => {
  const { pool, run } = await erp(salesOrder)
  await using held = await beginTransaction(pool)
  const { rows } = await held.db.query<{ pid: number }>('select pg_backend_pid() as pid')
  await held.db.query('lock table sales_order in access exclusive mode')
  const startMs = performance.now()
  const error = await run('sales_order').catch((error: unknown) => error)
  const pid = rows[0]?.pid
  expect(explainError(error)).toEqual({
    exitCode: 1,
    message: expect.stringMatching(
      new RegExp(
        `^the outbox’s table is locked by pid ${pid} .*, so it could not be read\\. End that session in its program, or run \`select pg_terminate_backend\\(${pid}\\)\` in the ERP’s database\\.$`,
      ),
    ),
  })
  expect(performance.now() - startMs).toBeLessThan(15_000)
})

test('if our user may not use the schema, describe prints the grant', async () => {
  const { pool, url } = await erp('create schema "my Schema"; create table "my Schema".x (id bigint primary key)')
  const role = `stranger_${new URL(url).pathname.slice(6)}`
  await pool.query(`create role ${role} login password 'x'`)
  onTestFinished(async () => void (await pool.query(`drop owned by ${role}; drop role ${role}`)))
  const run = runOn(Object.assign(new URL(url), { username: role, password: 'x' }).href)
  for (const table of ['"my Schema".x', 'my Schema.y']) {
    const { code, messages } = await run(table)
    expect({ code, messages }).toEqual({
      code: 1,
      messages: `outboxd: the database role lacks permissions. The owner grants them with:\ngrant usage on schema "my Schema" to ${role};\n`,
    })
  }
  expect(JSON.parse((await run('my Schema.x', { json: true })).printed)).toMatchObject({
    table: null,
    denied: expect.stringContaining('grant usage on schema "my Schema"'),
  })
})

test('if the type has a mapping file already, a warning says that none is proposed', async () => {
  const { run } = await erp(
    'create table "order" (id bigint primary key, customer_no text, total numeric, "customerId" uuid, synced_at date)',
  )
  const { printed, messages } = await run('order', {}, 'mappings')
  expect(printed).not.toContain('order.yaml ---')
  expect(messages).toMatch(
    /warning: MAPPINGS_DIR has a mapping file of the type "order" already, so none is proposed for it\..* If the file is for other records, give these rows another type in outbox\.yaml/,
  )
})

test('more than 12 types, or none, are left to fill in, in one file', async () => {
  const { pool, run } = await erp('create table t (id bigint primary key, type text, payload jsonb)')
  const toFillIn = async () => (await run('t')).messages.match(/^to fill in: .*\.yaml:2 (.*)$/m)?.[1]
  const asked =
    'the value that such rows have in "type", in a file like this for each. If "type" is not a type, write type: { constant: … } in outbox.yaml'
  expect(await toFillIn()).toBe(asked)
  await pool.query(`insert into t select n, 'kind ' || n, '{}' from generate_series(1, 12) n`)
  expect(await toFillIn()).toBeUndefined()
  await pool.query(`insert into t values (13, 'kind 13', '{}')`)
  expect(await toFillIn()).toBe(asked)
})

test('no value of a payload is printed, only names', async () => {
  const { pool, run } = await erp('create table t (id bigint primary key, type text, payload jsonb)')
  await pool.query(`insert into t values (1, 'data', '{"customerId": "Jane Doe", "amount": 4711}')`)
  const { printed, messages } = await run('t')
  expect(printed).toContain('from: customerId')
  expect(printed + messages).not.toMatch(/Jane|4711/)
})

test('describe prints the grant for a right that our user lacks', async () => {
  const { pool, url } = await erp(
    'create table invoice (id bigint primary key, total numeric(12,2), synced_at timestamptz)',
  )
  const role = `reader_${new URL(url).pathname.slice(6)}`
  await pool.query(`create role ${role} login password 'x'; grant select on invoice to ${role}`)
  onTestFinished(async () => void (await pool.query(`drop owned by ${role}; drop role ${role}`)))
  const { code, messages } = await runOn(Object.assign(new URL(url), { username: role, password: 'x' }).href)('invoice')
  expect(code).toBe(0)
  expect(messages).toContain(`grant update (synced_at) on public.invoice to ${role};`)
})

test('if the words of a status may be about the business, the waiting ones are left to fill in', async () => {
  const { pool, run } = await erp(
    `create table t (id bigint primary key, data jsonb, status text not null default 'draft')`,
  )
  await pool.query(`insert into t values (1, '{}', 'draft'), (2, '{}', 'shipped')`)
  const { messages, mappingsDir } = await run('t', { write: true })
  expect(messages).toMatch(/warning: "status" has words that may be about your business \(draft, shipped\)/)
  expect(messages).toMatch(/to fill in: .*which values say that the row waits\? null for NULL; it has draft, shipped/)
  expect(() => loadOutboxFile(mappingsDir)).toThrow(/FILL IN is still there: /)
})

test('a column that cannot hold what outboxd writes is a warning even before the file is filled in', async () => {
  const { run } = await erp(`create domain brief as text check (length(value) < 5);
    create table t (id bigint primary key, status text not null, net_amount numeric not null, synced_at timestamptz, sync_error brief)`)
  const { messages } = await run('t')
  expect(messages).toMatch(/to fill in: .*which rows are to be sent/)
  expect(messages).toMatch(/warning: the table "public"\."t" .*"sync_error".*cannot take what outboxd writes/)
})
