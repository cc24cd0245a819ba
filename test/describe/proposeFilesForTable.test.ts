import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { command } from '../../src/commands/describe.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { loadOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { readRecordContentsThatFit } from '../../src/outbox/readRecordContents.ts'
import { readWaitingRows } from '../../src/outbox/readRows.ts'
import { captureDocuments } from '../support/changeCapture.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'
import { erps } from '../support/erpDdl.ts'

async function erp(ddl: string) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(ddl)
  const run = async (
    table: string,
    options: { endpoint?: string; capture?: boolean; child?: string[]; type?: string } = {},
  ) => {
    const mappingsDir = mkdtempSync(join(tmpdir(), 'outboxd-describe-'))
    const context = testContext({ DATABASE_URL: database.url, MAPPINGS_DIR: mappingsDir })
    expect(await command.action(context, table, { write: true, ...options }), context.messages()).toBe(0)
    const texts = Object.fromEntries(
      readdirSync(mappingsDir).map((name) => [name, readFileSync(join(mappingsDir, name), 'utf8')]),
    )
    const mappingName = Object.keys(texts).find((name) => name.endsWith('.yaml') && name !== 'outbox.yaml') ?? ''
    const captureName = Object.keys(texts).find((name) => name.endsWith('.capture.sql')) ?? ''
    return {
      ...{ mappingsDir, messages: context.messages(), printed: context.printed(), outbox: texts['outbox.yaml'] ?? '' },
      ...{ mapping: texts[mappingName] ?? '', capture: texts[captureName] ?? '' },
      write: (text: string) => writeFileSync(join(mappingsDir, mappingName), text),
    }
  }
  return { pool: database.pool, run }
}

/** In each of them, the names or the foreign keys suggest something wrong. */
const misleading: Record<string, { table: string; ddl: string }> = {
  'amount is net, and the gross amount has another name': {
    table: 'invoice',
    ddl: `create table invoice (id serial primary key, customer_id varchar(10) not null, order_date timestamptz not null,
        amount numeric(12,2), amount_incl numeric(12,2), status text default 'draft', field1 text, field2 text);
      insert into invoice (customer_id, order_date, amount, amount_incl) values ('C1', now(), 100, 119)`,
  },
  'the names of the interface in an ERP that has them for its own ids and net amounts': {
    table: 'Order',
    ddl: `create table "Customer" (id serial primary key, name text);
      create table "Order" (id serial primary key, "customerId" int references "Customer", "orderDate" timestamptz, amount numeric,
        items jsonb, field1 text, "createdAt" timestamptz not null default now())`,
  },
  'the price is no longer written, and the new price has another name': {
    table: 'sale',
    ddl: `create table sale (id serial primary key, customer varchar(10), total numeric(10,2), total_v2 numeric(10,2));
      create table sale_line (id serial primary key, sale_id int references sale, sku text, qty numeric, unit_price numeric, price2 numeric);
      insert into sale (customer, total_v2) values ('C1', 5); insert into sale_line (sale_id, sku, qty, price2) values (1, 'A', 1, 5)`,
  },
  'only the taxes have a foreign key, and the lines have none': {
    table: 'bill',
    ddl: `create table bill (id serial primary key, customer varchar(10), total numeric);
      create table bill_tax (id serial primary key, bill_id int references bill, item text, quantity numeric, amount numeric);
      create table bill_rows (id serial primary key, bill_id int, item text, quantity numeric, amount numeric)`,
  },
  'deleted lines and documents stay in the tables': {
    table: 'doc',
    ddl: `create table doc (id serial primary key, customer varchar(10), total numeric, deleted_at timestamptz);
      create table doc_line (id serial primary key, doc_id int references doc, article text, quantity numeric, deleted_at timestamptz)`,
  },
  'a document in another currency than euro': {
    table: 'ventes',
    ddl: `create table ventes (id serial primary key, client varchar(10), amount numeric(10,2), devise char(3), processed boolean, sent_at timestamptz);
      insert into ventes (client, amount, devise) values ('C1', 500, 'CHF'), ('C2', 5, 'EUR')`,
  },
  'a status of the ERP whose words look like those of an outbox': {
    table: 'job',
    ddl: `create table job (id serial primary key, customer varchar(10), amount numeric, payload jsonb, type text,
        status text check (status in ('new', 'sent', 'done')), synced_at timestamptz, created_at timestamptz not null default now())`,
  },
}

const all = [
  ...Object.entries(misleading),
  ...erps.map((of): [string, { table: string; ddl: string }] => [of.name, of]),
]
const ways = [{}, { endpoint: 'data' }, { endpoint: 'orders' }, { capture: true }]

describe.each(all)('%s', (_, { table, ddl }) => {
  test('no value is filled in by its name, and nothing loads', async () => {
    const { run } = await erp(ddl)
    for (const way of ways) {
      const { outbox, mapping, capture, mappingsDir } = await run(table, way)
      const { fields, source, document, endpoint } = parse(mapping)
      for (const [name, field] of Object.entries<Record<string, unknown>>(fields)) {
        const isOfQuery = name === 'items' && source !== undefined
        expect(field.from).toBe(isOfQuery ? 'items' : 'FILL_IN')
        expect(field).not.toHaveProperty('constant')
        expect(field).not.toHaveProperty('default')
      }
      const used = `${source ?? ''}`.split('\n').filter((line) => line !== '' && !line.trimStart().startsWith('--'))
      if (source !== undefined)
        expect(used.filter((line) => !/^(select|from .* h$|where h\..* = any\(\$1\))|^ {2}h\./.test(line))).toEqual(
          endpoint === 'orders' ? [expect.stringMatching(/^ {2}FILL_IN as items -- FILL IN: /)] : [],
        )
      expect(() => loadMappings(mappingsDir)).toThrow('FILL IN is still there: ')
      if (way.capture) {
        expect(document).toMatchObject({ key: expect.any(String), condition: 'FILL_IN' })
        expect(capture).not.toContain('elsif')
      } else {
        expect(parse(outbox)).toMatchObject({ filter: 'FILL_IN', state: 'FILL_IN' })
        expect(parse(outbox)).not.toHaveProperty('key')
        expect(parse(outbox)).not.toHaveProperty('write')
        expect(() => loadOutboxFile(mappingsDir)).toThrow('FILL IN is still there: ')
      }
    }
  })
})

test('the candidates say what the user has to know: empty columns, types that are not exact, ids, currencies', async () => {
  const { run } = await erp(`create table party (id int primary key, no text);
    create table sale (id serial primary key, party int references party, old numeric, price double precision, total numeric(10,2), gross text, cur text,
      state text check (state in ('open', 'paid')), gone boolean);
    insert into sale (price, total, gross, cur) values (1, 2, '2,40', 'CHF'), (1, 2, '2,40', 'EUR')`)
  const { mapping, outbox, printed } = await run('sale')
  expect(mapping).toMatch(
    /total_amount: .*\n#.*old \(numeric, NULL in each row read\), total \(numeric\(10,2\)\), gross \(text\), cur/,
  )
  expect(mapping).toMatch(/customer_id: .*\n#.*party \(integer, an id of public\.party, NULL in each row read\)/)
  expect(outbox).toMatch(
    /^filter: .*Leave out currencies other than euro \(cur\).*\n#.*state \(text, 'open' \| 'paid'.*gone \(boolean, may be NULL/m,
  )
  expect(printed).toMatch(/^# {3}price +double precision, not exact, 1 different, 0 NULL$/m)
  expect(printed + mapping + outbox).not.toContain('CHF')
})

test('foreign keys in both directions, of several columns too, and similar names as guesses are shown', async () => {
  const { run } = await erp(`create table tenant (id int primary key);
    create table kopf (tenant int references tenant, no int, outbox_id bigint generated always as identity unique, primary key (tenant, no));
    create table pos (t int, n int, line int, text text, primary key (t, n, line), foreign key (t, n) references kopf);
    create table kopf_text (tenant int, no int, text text)`)
  const { printed, mapping, outbox } = await run('kopf', { endpoint: 'orders' })
  expect(printed).toContain('# refers to public.tenant: (tenant) = (id)\n')
  expect(printed).toContain('# public.pos refers to it: (t, n) = (tenant, no)\n')
  expect(printed).toContain('# a guess by names: public.kopf_text has a similar name\n')
  expect(outbox).toMatch(/^id: outbox_id +# bigint, unique and not null$/m)
  expect(mapping).toContain('-- left join public.tenant r1 on r1.id = h.tenant\n')
  expect(mapping).toContain('where l.t = h.tenant and l.n = h.no and FILL_IN)\n')
  expect(mapping).toMatch(/order by l\.t, l\.n, l\.line\) from public\.pos l$/m)
  expect(mapping).toMatch(/where l\.FILL_IN = h\.FILL_IN and FILL_IN\) -- a guess: no foreign key$/m)
  expect(mapping).toContain('where h.outbox_id = any($1)\n')
})

test('tables whose names begin alike, or with a column like the table, are guesses; others are not', async () => {
  const { run } =
    await erp(`create table "Sales Header" ("No_" varchar(20) primary key); create table "Sales Line" ("Document No_" varchar(20));
    create table note ("Sales Header No_" varchar(20)); create table item ("No_" varchar(20)); create table salt (n int)`)
  const { printed } = await run('Sales Header')
  expect(printed.match(/a guess by names: .*/g)).toEqual([
    'a guess by names: public.note may refer to it: ("Sales Header No_") = ("No_")',
    'a guess by names: public."Sales Line" has a similar name',
  ])
})

test('a child that no foreign key declares is proposed as the lines, and the records as orders', async () => {
  const { run } = await erp(`create table kopf (jahr int, no int, primary key (jahr, no));
    create table zeile (jahr int, kopf int, pos int, menge numeric, primary key (jahr, kopf, pos))`)
  const { mapping } = await run('kopf', { capture: true, child: ['zeile(jahr, kopf)'] })
  expect(mapping).toMatch(/^endpoint: orders /m)
  expect(mapping).toContain('order by l.jahr, l.kopf, l.pos) from public.zeile l\n')
  expect(mapping).toContain('where l.jahr = h.jahr and l.kopf = h.no and FILL_IN)\n')
})

test.each(erps)('$name: filled in from its candidates, the query returns the document with its lines', async (of) => {
  const { pool, run } = await erp(of.ddl)
  const { mapping, mappingsDir, capture, write } = await run(of.table, {
    ...{ endpoint: 'orders', capture: true, child: [of.child], type: 'order' },
  })
  const [, childTable = '', childColumn = ''] = /^(.*)\((.*)\)$/.exec(of.child) ?? []
  const block = mapping
    .split('-- (select ')
    .find((each) => each.includes(` from ${childTable} l\n`))
    ?.split('\n')
    .slice(0, 2)
    .join(' ')
    .replaceAll(/ -- a guess.*| {2,}--/g, '')
  const items = `(select ${block}`
    .replace(`'NAME', l.FILL_IN`, () => `'line', l.${childColumn}`)
    .replace('l.FILL_IN = h.FILL_IN', () => `l.${childColumn} = h."No_"`)
    .replace('and FILL_IN', 'and true')
  write(
    mapping
      .replace(/FILL_IN as items.*/, () => `${items} as items, md5('x')::uuid as customer`)
      .replace('condition: FILL_IN', 'condition: "true"')
      .replace('from: FILL_IN', 'from: customer'),
  )
  const [order] = loadMappings(mappingsDir).values()
  const { rows } = await pool.query(`select to_jsonb(r) as row from (${order?.source?.sql}) r`, [[of.id]])
  expect(rows).toHaveLength(1)
  expect(rows[0].row).toMatchObject({ id: of.id, items: Array(of.lines).fill({ line: of.id }) })

  await pool.query(capture)
  await pool.query(of.touch)
  const captured = await pool.query('select type, payload from outbox')
  expect(captured.rows[0]).toEqual({ type: 'order', payload: { id: of.id, captured_in: expect.any(String) } })
})

test('a key of several columns: the query finds each document by all of them', async () => {
  const { pool, run } =
    await erp(`create table kopf (mandant int, no varchar(10), total numeric(10,2), primary key (mandant, no));
    insert into kopf values (1, 'A', 5), (2, 'A', 6)`)
  const { mapping, mappingsDir, write } = await run('kopf', { endpoint: 'orders', capture: true })
  write(
    mapping
      .replace(/FILL_IN as items.*/, "'[]'::jsonb as items, md5('x')::uuid as customer")
      .replace('condition: FILL_IN', 'condition: h.total > 5')
      .replace('from: FILL_IN', 'from: customer'),
  )
  const mappings = loadMappings(mappingsDir)
  await pool.query(`insert into outbox (type, payload) select 'kopf', jsonb_build_object('id', jsonb_build_object('no', no, 'mandant', mandant)) from kopf
    order by mandant; insert into outbox (type, payload) values ('kopf', '{"id": {"mandant": 3, "no": "A"}}'), ('kopf', '{"id": 3}')`)
  const outbox = new Outbox(pool, 'outbox', 1_000_000, pool)
  const read = await readRecordContentsThatFit(outbox, mappings, await readWaitingRows(outbox, 10))
  expect(read.map(({ payload, noRecord, unreadable }) => unreadable ?? noRecord ?? JSON.parse(payload ?? ''))).toEqual([
    'public.kopf {"no": "A", "mandant": 1} does not meet the condition',
    expect.objectContaining({ id: { mandant: 2, no: 'A' }, total: 6 }),
    'public.kopf {"no": "A", "mandant": 3} was deleted',
    expect.stringContaining('an object with the columns of the key'),
  ])
})

test('if no table below the document is given, a warning names those that refer to it', async () => {
  const { run } = await erp(
    'create table sale (id int primary key); create table sale_line (id int primary key, sale int references sale)',
  )
  expect((await run('sale', { capture: true })).messages).toContain("--child 'public.sale_line(sale)'")
  expect((await run('sale', { capture: true, child: ['sale_line(sale)'] })).messages).not.toContain('warning')
})

test('of a table with a document, all is left to fill in, and the query of a mapping file is not proposed', async () => {
  const { run } = await erp(`create table shop_event (id bigint primary key, kind text, body text not null);
    insert into shop_event values (1, 'x', '{"customerId": "C1", "orderDate": "2026-11-20", "amount": 1}')`)
  const { mapping, outbox } = await run('shop_event')
  const { fields, type, source } = parse(mapping)
  expect([type, source]).toEqual(['FILL_IN', undefined])
  expect(Object.values<{ from: string }>(fields).map(({ from }) => from)).toEqual(Array(5).fill('FILL_IN'))
  expect(parse(outbox)).toMatchObject({ payload: 'FILL_IN', type: 'FILL_IN', state: 'FILL_IN', filter: 'FILL_IN' })
  expect(outbox).toMatch(/^payload: FILL_IN .*\n# {3}one of: body \(text\)$/m)
})

test('the condition of captured documents names the currencies, and only captured tables are proposed for the query', async () => {
  const { run } = await erp(`create table sale (id int primary key, cur char(3)); insert into sale values (1, 'EUR');
    create table sale_line (id int primary key, sale int references sale); create table sale_text (sale_id int)`)
  const { mapping } = await run('sale', { capture: true, child: ['sale_line(sale)'] })
  expect(mapping).toMatch(/^ {2}condition: FILL_IN .*Leave out currencies other than euro \(cur\)/m)
  expect(mapping).toContain('from public.sale_line l')
  expect(mapping).not.toContain('sale_text')
})

test('a type, and the files, are named after a table with umlauts', async () => {
  const { run } = await erp('create table "Aufträge 2" (nr int primary key)')
  const { mapping, mappingsDir, capture } = await run('Aufträge 2', { capture: true })
  expect(mapping).toMatch(/^type: "?Aufträge_2"? /m)
  expect(readdirSync(mappingsDir)).toContain('Aufträge_2.capture.sql')
  expect(capture).toContain(`select 'Aufträge_2', `)
})

test('of many tables that refer to one, the query proposes the first twenty', async () => {
  const lines = Array.from({ length: 30 }, (_, i) => `create table l${i} (head int references head);`)
  const { run } = await erp(`create table head (id int primary key); ${lines.join('')}`)
  const { mapping, printed } = await run('head')
  expect(printed.match(/ refers to it: /g)).toHaveLength(30)
  expect(mapping.match(/ from public\.l\d+ l$/gm)).toHaveLength(20)
})

test('a table of another schema is suggested for --child, too', async () => {
  const { pool } = await erp(
    'create schema vk; create table vk.kopf (nr int primary key); create table vk.pos (kopf int)',
  )
  await expect(captureDocuments(pool, 'vk.kopf', { children: ['pos(kopf)'] })).rejects.toThrow(
    'there is no table pos in the outbox\'s database, or this user has no permission to see it; did you mean "vk.pos"?',
  )
})

test('an unknown endpoint exits with 2', async () => {
  const context = testContext({ DATABASE_URL: 'postgres://x/y', MAPPINGS_DIR: tmpdir() })
  expect(await command.action(context, 't', { endpoint: 'invoices' })).toBe(2)
})
