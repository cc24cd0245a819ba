import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { command as describe } from '../../src/commands/describe.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { explainError } from '../../src/operations/explainError.ts'
import { loadOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { beginTransaction } from '../../src/postgres/database.ts'
import { type FileProblem, FilesInvalid } from '../../src/yaml/yamlDocument.ts'
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

const ourTable = (readFileSync('migrations/outbox.sql', 'utf8').split('do $$')[0] ?? '').replaceAll(':table', 'mine')

test('for a business table, describe fills in what follows from keys and types, and the files load only once the rest is filled in', async () => {
  const { pool, run } = await erp(salesOrder)
  await pool.query(`insert into sales_order (customer_no, status, net_amount, ordered_at)
    select 'C1', case when n % 2 = 0 then 'draft' else 'released' end, 1, now() from generate_series(1, 9) n`)
  const { code, printed, messages, mappingsDir } = await run('sales_order')
  expect(code).toBe(0)
  expect(readdirSync(mappingsDir)).toEqual([])
  expect(printed).toMatch(/^# public\.sales_order: 9 rows read\n# {3}id +bigint, primary key, 9 different, 0 NULL\n/)
  expect(printed).toMatch(/^# {3}reference +text, NULL in each row read$/m)
  expect(printed).toContain(`# --- ${join(mappingsDir, 'outbox.yaml')} ---`)
  expect(printed).toMatch(/^id: id +# bigint, the primary key$/m)
  expect(printed).toMatch(/^type: { constant: sales_order }/m)
  expect(printed).toMatch(/^created_at: created_at /m)
  expect(printed).toMatch(/^ {4}h\.\*\n {2}from public\.sales_order h\n {2}where h\.id = any\(\$1\)$/m)
  expect(printed).toMatch(
    /^filter: FILL_IN +# FILL IN: a condition in SQL: which are to be sent\?.*\n# {3}one of: .*status \(text\)/m,
  )
  expect(printed).toMatch(/^state: FILL_IN +# FILL IN: /m)
  expect(printed).toMatch(
    /^ {2}total_amount: { from: FILL_IN, required: true, type: "decimal\(10,2\)" } # FILL IN: .*\n# {3}one of: .*net_amount/m,
  )
  expect(printed + messages).not.toMatch(/released|draft|\bC1\b/)
  expect(messages).toMatch(/^to fill in: .*outbox\.yaml:\d+ a condition in SQL/m)

  await run('sales_order', { write: true }, mappingsDir)
  expect(() => loadOutboxFile(mappingsDir)).toThrow(/outbox\.yaml:\d+:\d+ FILL IN is still there: a condition in SQL/)
  edit(mappingsDir, 'outbox.yaml', [
    [/^filter: .*/m, `filter: status = 'released'`],
    [/^state: .*/m, 'state: { timestamp: synced_at, set: [completed] }'],
    [/^start: .*/m, 'start: id:1'],
  ])
  edit(mappingsDir, 'sales_order.yaml', [
    [/customer_id: { from: FILL_IN/, 'customer_id: { from: customer_no'],
    [/order_date: { from: FILL_IN/, 'order_date: { from: ordered_at'],
    [/total_amount: { from: FILL_IN/, 'total_amount: { from: net_amount'],
    [/field1: { from: FILL_IN, required: true/, 'field1: { constant: value1'],
    [/field2: { from: FILL_IN/, 'field2: { from: reference'],
  ])
  expect(loadOutboxFile(mappingsDir)).toMatchObject({ id: 'id', state: { column: 'synced_at' }, start: 'id:1' })
  expect([...loadMappings(mappingsDir).keys()]).toEqual(['sales_order'])
})

function edit(dir: string, name: string, changes: readonly [RegExp, string][]): void {
  let text = readFileSync(join(dir, name), 'utf8')
  for (const [place, value] of changes) {
    expect(text).toMatch(place)
    text = text.replace(place, value)
  }
  writeFileSync(join(dir, name), text)
}

test('loading reports each place to fill in with the words of describe, and no other problem', async () => {
  const { run } =
    await erp(`create table shop_order (id bigint primary key, total numeric(10,2), note text, sent boolean not null default false);
    create table shop_line (id bigint primary key, shop_order_id bigint references shop_order)`)
  const { mappingsDir, messages } = await run('shop_order', { write: true })
  const wanted = messages.split('\n').flatMap((line) => /^to fill in: (\S+:\d+) (.*)$/.exec(line)?.slice(1, 3) ?? [])
  expect(wanted).toHaveLength(10)
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

test('--json prints the table, the files, the places to fill in and the warnings', async () => {
  const { run } = await erp(salesOrder)
  const { printed } = await run('sales_order', { json: true })
  const json = JSON.parse(printed)
  expect(Object.keys(json)).toEqual(['table', 'related', 'files', 'warnings', 'fillIn', 'written'])
  expect(json).toMatchObject({ table: { sql: 'public.sales_order' }, warnings: [], written: [] })
  expect(json.table.columns[1]).toMatchObject({
    ...{ name: 'customer_no', exactType: 'character varying(10)', notNull: true },
    sample: { rows: 0, filled: 0, different: 0 },
  })
  expect(json.files).toHaveLength(2)
  expect(json.fillIn[0]).toMatchObject({ file: json.files[0].file, line: expect.any(Number) })
})

test('for the table of `migrate --outbox`, which needs no outbox.yaml, only a mapping file is proposed', async () => {
  const { run } = await erp(ourTable)
  const { mappingsDir } = await run('mine', { write: true })
  expect(readdirSync(mappingsDir)).toEqual(['mine.yaml'])
  expect(() => loadMappings(mappingsDir)).toThrow(/mine\.yaml:2:7 FILL IN is still there: the type that such rows have/)
  await run('mine', { write: true, type: 'Order/EU' }, mappingsDir)
  expect(readFileSync(join(mappingsDir, 'Order_EU.yaml'), 'utf8')).toMatch(/^type: "Order\/EU" /m)
})

test('names with upper case, blanks, dots and quotes are written so that the files load and the query runs', async () => {
  const { run, pool } = await erp(`create table "Sales.v2 Order" (
      "Order No" text primary key, "Customer.No" text not null, "Yes" text, "a ""b""" text, id int, "Synced At" timestamptz);
    create table "sales ""line""" ("N" text references "Sales.v2 Order", "Qty" int);
    insert into "Sales.v2 Order" values ('S1', 'C1', 'y', 'ab', 5); insert into "sales ""line""" values ('S1', 2)`)
  const { code, mappingsDir, printed } = await run('"Sales.v2 Order"', { write: true, endpoint: 'orders' })
  expect(code).toBe(0)
  expect(printed).toContain('# public."sales ""line""" refers to it: ("N") = ("Order No")')
  edit(mappingsDir, 'outbox.yaml', [
    [/^filter: .*\n/m, ''],
    [/^created_at: .*\n/m, ''],
    [/^state: .*/m, 'state: { timestamp: Synced At, set: [completed] }'],
    [/^start: .*/m, 'start: now'],
  ])
  expect(loadOutboxFile(mappingsDir)).toMatchObject({ table: 'Sales.v2 Order', id: 'Order No' })
  edit(mappingsDir, 'Sales_v2_Order.yaml', [
    [/FILL_IN as items.*/, `(select jsonb_agg(l."Qty") from "sales ""line""" l where l."N" = h."Order No") as items`],
    [/from: FILL_IN/, 'from: \'["a \\"b\\""]\''],
  ])
  const [order] = loadMappings(mappingsDir).values()
  const { rows } = await pool.query(order?.source?.sql ?? '', [['S1']])
  expect(rows).toEqual([
    { id: 'S1', 'Order No': 'S1', 'Customer.No': 'C1', Yes: 'y', 'a "b"': 'ab', 'Synced At': null, items: [2] },
  ])
})

test.each([
  ['no primary key', 'create table t (a int, payload jsonb)'],
  ['a composite key', 'create table t (a int, b int, primary key (a, b))'],
  ['a unique column that may be NULL', 'create table t (a int unique)'],
  [
    'partitions by another column',
    'create table t (id bigint, day date, primary key (id, day)) partition by range (day)',
  ],
  ['tables that inherit from it', 'create table t (id int primary key); create table heir () inherits (t)'],
])('%s: the id is left to fill in, and the place says why', async (_, ddl) => {
  const { run } = await erp(ddl)
  for (const endpoint of ['data', 'orders']) {
    const { code, messages, mappingsDir } = await run('t', { write: true, endpoint })
    expect(code).toBe(0)
    expect(messages).toMatch(
      /No index shows that one is unique and not null\..* add column outbox_id bigint.* promised/,
    )
    expect(() => loadOutboxFile(mappingsDir)).toThrow(/FILL IN is still there: /)
  }
})

test('columns that our user may not read are not counted', async () => {
  const { pool, url } = await erp(`create table t (id bigint primary key, secret text, sent_at timestamptz);
    insert into t values (1, 'x')`)
  const role = `reader_${new URL(url).pathname.slice(6)}`
  await pool.query(`create role ${role} login password 'x'; grant select (id) on t to ${role}`)
  onTestFinished(async () => void (await pool.query(`drop owned by ${role}; drop role ${role}`)))
  const { code, printed } = await runOn(Object.assign(new URL(url), { username: role, password: 'x' }).href)('t')
  expect(code).toBe(0)
  expect(printed).toMatch(/^# public\.t: 1 row read\n.*\n# {3}secret +text, no permission to read it$/m)
})

test('for a view, describe points to the table below it', async () => {
  const { run } = await erp('create table t (id int primary key); create view v as select * from t')
  expect(await run('v')).toMatchObject({ code: 1, messages: expect.stringContaining('describe the table below it') })
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
  expect(JSON.parse((await run('sales_ordr', { json: true })).printed)).toEqual({
    table: null,
    problem: expect.stringContaining('did you mean'),
  })
  expect(await run('a.b.c')).toMatchObject({ code: 2, messages: expect.stringContaining(`outboxd describe '"a.b"'`) })
})

test('if the table is locked, describe fails soon and says how to find the session that holds the lock', async () => {
  const { pool, run } = await erp(salesOrder)
  await using held = await beginTransaction(pool)
  await held.db.query('lock table sales_order in access exclusive mode')
  const startMs = performance.now()
  const error = await run('sales_order').catch((error: unknown) => error)
  expect(explainError(error)).toEqual({
    exitCode: 1,
    message: expect.stringMatching(/cannot be used: another session has locked a table\. .*pg_stat_activity/),
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
    problem: expect.stringContaining('grant usage on schema "my Schema"'),
  })
})

test('no value of a row is printed', async () => {
  const { pool, run } = await erp('create table t (id bigint primary key, type text, payload jsonb)')
  await pool.query(`insert into t values (1, 'data', '{"customerId": "Jane Doe", "amount": 4711}')`)
  const { printed, messages } = await run('t')
  expect(printed).toMatch(/^payload: FILL_IN .*\n# {3}one of: payload \(jsonb\)$/m)
  expect(printed + messages).not.toMatch(/Jane|4711|'data'/)
})
