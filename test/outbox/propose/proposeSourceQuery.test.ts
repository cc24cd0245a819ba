import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { command as describe } from '../../../src/commands/describe.ts'
import { loadMappings } from '../../../src/mapping/loadMappings.ts'
import { loadOutboxFile } from '../../../src/outbox/readOutboxFile.ts'
import { asInstaller, installCapture } from '../../support/changeCapture.ts'
import { testContext } from '../../support/context.ts'
import { createDatabase } from '../../support/database.ts'
import { erps } from '../../support/erpDdl.ts'

/**
 * `describe` of a header with lines, on tables of seven ERPs. The proposed query reads the document, and the proposed
 * call captures a change of a line.
 */

async function erp(ddl: string) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(ddl)
  const run = async (table: string, endpoint?: string, role?: string) => {
    const mappingsDir = mkdtempSync(join(tmpdir(), 'outboxd-describe-'))
    const url = Object.assign(new URL(database.url), role === undefined ? {} : { username: role, password: 'x' })
    const context = testContext({ DATABASE_URL: url.href, MAPPINGS_DIR: mappingsDir })
    const code = await describe.action(context, table, { write: true, ...(endpoint === undefined ? {} : { endpoint }) })
    const [file = ''] = readdirSync(mappingsDir).filter((name) => name.endsWith('.yaml') && name !== 'outbox.yaml')
    const [sql] = readdirSync(mappingsDir).filter((name) => name.endsWith('.capture.sql'))
    return {
      ...{ code, mappingsDir, messages: context.messages(), file: join(mappingsDir, file) },
      capture: sql === undefined ? null : readFileSync(join(mappingsDir, sql), 'utf8'),
    }
  }
  return { pool: database.pool, url: database.url, run }
}

/** Fills in the places left open in a mapping file, and loads it. */
function loadFilledIn(dir: string, file: string) {
  const text = readFileSync(file, 'utf8')
    .replace(/^( {2}customer_id: \{ from: )""(.*?)# FILL IN.*$/m, '$1customerId$2')
    .replace(/(timezone: )""(.*?)# FILL IN.*$/m, '$1Europe/Berlin$2')
  writeFileSync(file, text)
  const [mapping] = loadMappings(dir).values()
  if (mapping === undefined) throw new Error('no mapping was loaded')
  return mapping
}

test.each(erps)('$name: the proposed files load, and their queries return the document', async (of) => {
  const { pool, run } = await erp(of.ddl)
  const read = async (mapping: { source: { sql: string } | null }) => {
    const { rows } = await pool.query(`select to_jsonb(r) as row from (${mapping.source?.sql}) r`, [[of.order.id]])
    return rows.map(({ row }) => row)
  }

  const asOrder = await run(of.table)
  expect(asOrder.code).toBe(0)
  expect(readdirSync(asOrder.mappingsDir)).not.toContain('outbox.yaml')
  expect(asOrder.capture).toContain(`children  => array['${of.child}']`)
  expect(asOrder.messages).toMatch(/run .*\.capture\.sql \(it says how\)/)
  const workflow = of.workflow ?? 'n.COLUMN'
  expect(asOrder.messages).toMatch(
    new RegExp(`capture\\.sql:\\d+ which documents are to be sent.*${workflow.replace('.', '\\.')}`),
  )
  const order = loadFilledIn(asOrder.mappingsDir, asOrder.file)
  expect(order.endpoint).toBe('orders')
  const { id, items, customerId = of.data.customerId } = of.order
  expect(await read(order)).toEqual([expect.objectContaining({ id, items, customerId })])

  await installCapture(pool)
  await asInstaller(
    pool,
    asOrder.capture?.replace('FILL_IN', () => (of.workflow === null ? 'null' : `$$${of.workflow} is not null$$`)) ?? '',
  )
  await pool.query(of.touch)
  const { rows } = await pool.query('select type, payload from outbox')
  expect(rows).toEqual([{ type: order.type, payload: { document: of.document, id } }])

  const asData = await run(of.table, 'data')
  const data = loadFilledIn(asData.mappingsDir, asData.file)
  expect(data.endpoint).toBe('data')
  expect(await read(data)).toEqual([of.data])
})

test('the proposed query keeps the digits of an amount as the ERP wrote them', async () => {
  const { pool, run } = await erp(erps[2]?.ddl ?? '')
  const { mappingsDir, file } = await run('dbo.OINV')
  const { source } = loadFilledIn(mappingsDir, file)
  const { rows } = await pool.query(`select to_jsonb(r)::text as row from (${source?.sql}) r`, [[5]])
  expect(rows[0].row).toContain('"unitPrice": 12.345000')
})

test('the query reads the customer’s uuid for orders, and if there is none it is left to fill in', async () => {
  const ddl = (uuid: string) => `create table kunde (id serial primary key, nummer varchar(10)${uuid});
    create table auftrag (id serial primary key, kunde_id integer references kunde, betrag numeric(10,2));
    create table auftrag_position (id serial primary key, auftrag_id integer references auftrag, artikel text, menge numeric)`
  const without = await (await erp(ddl(''))).run('auftrag')
  expect(without.messages).toMatch(/FILL IN|to fill in: .*the customer’s uuid.*one of: customerId$/m)
  const { run } = await erp(ddl(', extern uuid'))
  const { file, messages } = await run('auftrag')
  expect(messages).not.toMatch(/to fill in: .*\.yaml/)
  expect(readFileSync(file, 'utf8')).toContain('c.extern as "customerId"')
})

test('a field that no column’s name suggests is left to fill in, with the columns to choose from', async () => {
  const { run } =
    await erp(`create table bill (id serial primary key, x_first date, x_second date, worth_a numeric, worth_b numeric, customer varchar(10));
    create table bill_line (id serial primary key, bill_id integer references bill, item text, qty numeric)`)
  const { messages } = await run('bill', 'data')
  expect(messages).toMatch(/to fill in: .*the date of the order.*; one of: x_first, x_second$/m)
  expect(messages).toMatch(/to fill in: .*the amount in euro, .*; one of: worth_a, worth_b$/m)
})

const shop = `create table clients (client_id serial primary key, client_no varchar(10) unique);
  create table goods (goods_id serial primary key, sku text unique, title text);
  create table purchase (purchase_id serial primary key, client_id int references clients, phase text not null, total numeric(12,2));
  create table purchase_item (item_id serial primary key, purchase_id int not null references purchase,
    goods_id int references goods, heap numeric, hue text);
  insert into goods (sku) values ('A1');
  insert into clients (client_no) values ('K1');
  insert into purchase (client_id, phase, total) values (1, 'open', 1), (1, 'ready', 2);
  insert into purchase_item (purchase_id, goods_id, heap, hue) values (1, 1, 3, 'red')`

test('lines with unknown names get the article by its foreign key and each number, and other columns are named', async () => {
  const { pool, run } = await erp(shop)
  const { mappingsDir, file } = await run('purchase')
  const { source } = loadFilledIn(mappingsDir, file)
  expect(source?.sql).toContain('-- not in the list: hue')
  const { rows } = await pool.query(source?.sql ?? '', [[1]])
  expect(rows).toEqual([expect.objectContaining({ items: [{ article: 'A1', heap: 3 }] })])
})

test('if our user may not read a table, describe prints the grant and still proposes the files', async () => {
  const { pool, run, url } = await erp(shop)
  const role = `clerk_${new URL(url).pathname.slice(6)}`
  await pool.query(`create role ${role} login password 'x'; grant select on purchase, purchase_item to ${role}`)
  onTestFinished(async () => void (await pool.query(`drop owned by ${role}; drop role ${role}`)))
  const { messages, capture } = await run('purchase', undefined, role)
  expect(messages).toContain(`grant select on public.clients, public.goods to ${role};`)
  expect(capture).toContain(
    `grant select on public.purchase, public.purchase_item, public.clients, public.goods to ${role};`,
  )
})

test('a header with its own mark is served directly, without change capture, and its lines by the query', async () => {
  const { run } =
    await erp(`create table invoice (id serial primary key, customer varchar(10), total numeric(10,2), created_at timestamptz, synced_at timestamptz);
    create table invoice_line (id serial primary key, invoice integer references invoice, sku text, qty numeric)`)
  const { mappingsDir, capture, file } = await run('invoice')
  expect(capture).toBeNull()
  expect(loadOutboxFile(mappingsDir)).toMatchObject({
    state: { kind: 'timestamp', column: 'synced_at' },
    payload: { columns: new Map([['id', 'id']]) },
  })
  expect(loadFilledIn(mappingsDir, file).source?.sql).toContain('from public.invoice_line l')
})

test('describe never proposes to write into a workflow column of the ERP', async () => {
  const states = `'draft', 'done', 'sent'`
  const { pool, run } = await erp(
    `create table sale (id serial primary key, customer varchar(10), amount numeric, state varchar, statecode int, ordered timestamptz)`,
  )
  await pool.query(`insert into sale (state) select unnest(array[${states}])`)
  const { mappingsDir } = await run('sale')
  const text = readFileSync(join(mappingsDir, 'outbox.yaml'), 'utf8')
  expect(text).toMatch(/^filter: +# FILL IN: .*The column has 'done', 'draft', 'sent'/m)
  expect(text).toMatch(/^state: +# FILL IN: .*state \(character varying; it has done, draft, sent\)/m)
  expect(text).not.toMatch(/(status|flag): state/)
})

test('created_at is left to fill in, with the columns to choose from and what is lost without it', async () => {
  const { run } = await erp(
    'create table bill (id serial primary key, customer varchar(10), amount numeric, valid_on timestamp, synced_at timestamptz)',
  )
  const { mappingsDir, messages } = await run('bill')
  expect(messages).toMatch(
    /outbox\.yaml:\d+ the time at which the row was made.*one of: valid_on\. To go without, remove this line\. Without it another row of a known id/,
  )
  expect(() => loadOutboxFile(mappingsDir)).toThrow(/FILL IN is still there: the time at which/)
})

test('an unknown endpoint exits with 2', async () => {
  const { run } = await erp('create table t (id serial primary key)')
  expect((await run('t', 'invoices')).code).toBe(2)
})

test('a table of any name whose key begins with the header’s key counts as lines, but a link table does not', async () => {
  const { run } = await erp(`create schema lab; create table lab.material (mat_id int primary key, sku text);
    create table lab.lab_case (case_id int primary key, stage text);
    create table lab.stage_log (case_id int references lab.lab_case, worker text, primary key (case_id, worker));
    create table lab.procedure_step (case_id int references lab.lab_case, step_no int, mat_id int references lab.material,
      dose numeric(8,2) not null, primary key (case_id, step_no))`)
  const { capture, messages } = await run('lab.lab_case')
  expect(messages).toContain('lab_case.capture.sql')
  expect(capture).toContain(`children  => array['lab.procedure_step.case_id']`)
  // Without the schema, Postgres refuses the call before install can say what is missing.
  expect(capture).toContain('grant usage on schema lab to outboxd_capture;')
  expect(capture).toContain('grant usage on schema lab to postgres;')
})
