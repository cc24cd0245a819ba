import { expect, test, vi } from 'vitest'
import type { OutboxRecord } from '../../src/model/outbox.ts'
import { SourceFailed } from '../../src/outbox/contentQueries.ts'
import { readContentsInBatches, readRecordContentsThatFit } from '../../src/outbox/readRecordContents.ts'
import { readWaitingRows } from '../../src/outbox/readRows.ts'
import { mappingFrom } from '../mapping/mappingOf.ts'
import { setup } from './setup.ts'

const ddl = `
  create table party (id int primary key, code text not null);
  create table sale (id int primary key, party int not null references party, total numeric, state text not null default 'new');
  create table sale_line (id int primary key, sale int not null references sale, product text, quantity numeric);
  insert into party values (5, 'C-0005');
  insert into sale values (1, 5, 1234567890.10), (2, 5, 0.00), (3, 5, 1e20);
  insert into sale_line values (10, 1, 'bolt', 2.50), (11, 1, 'nut', 3), (12, 2, 'nut', 100000000000000000000.01)`

/** Has no `payload`, so the payload is the id. */
const table = 'table: sale\nid: id\ntype: { constant: order }\nstate: { status: state, new: new }'

const query = `select s.id, p.code as "customerId", s.total,
    (select jsonb_agg(jsonb_build_object('article', l.product, 'quantity', l.quantity) order by l.id)
     from sale_line l where l.sale = s.id) as items
  from sale s join party p on p.id = s.party where s.id = any($1); `

const sourcesOf = (sql: string) => {
  const body = `fields: { id: { from: id, type: integer } }\nbody: { id: "\${id}" }`
  return new Map([['order', mappingFrom(`type: order\nendpoint: orders\nsource: ${JSON.stringify(sql)}\n${body}`)]])
}

const open = () => setup({ ddl, yaml: table })
const shown = (records: readonly OutboxRecord[]) => records.map(({ payload, unreadable }) => payload ?? unreadable)

test('a query returns the payload of each record in the order of the rows, and numbers keep their digits', async () => {
  const { outbox } = await open()
  const rows = await readWaitingRows(outbox, 10)
  expect(rows.map(({ payload }) => payload)).toEqual(['{"id":1}', '{"id":2}', '{"id":3}'])
  const read = await readRecordContentsThatFit(outbox, sourcesOf(query), rows)
  expect(read.map(({ payload: _, ...record }) => record)).toEqual(rows.map(({ payload: _, ...record }) => record))
  expect(shown(read)).toEqual([
    '{"id":1,"customerId":"C-0005","total":1234567890.10,"items":[{"article": "bolt", "quantity": 2.50}, {"article": "nut", "quantity": 3}]}',
    '{"id":2,"customerId":"C-0005","total":0.00,"items":[{"article": "nut", "quantity": 100000000000000000000.01}]}',
    '{"id":3,"customerId":"C-0005","total":100000000000000000000,"items":null}',
  ])
})

test('plain records are returned as they are, without a statement', async () => {
  const { outbox, pool } = await setup()
  await pool.query(`insert into outbox (type, payload) values ('data', '{"id": 1}')`)
  const rows = await readWaitingRows(outbox, 10)
  const connects = vi.spyOn(pool, 'connect')
  const queries = vi.spyOn(pool, 'query')
  expect(await readRecordContentsThatFit(outbox, sourcesOf(query), rows)).toEqual(rows)
  expect([connects.mock.calls, queries.mock.calls]).toEqual([[], []])
})

test('a record with no row or two rows in the result is unreadable, with file and id, and others are read', async () => {
  const { outbox } = await open()
  const rows = await readWaitingRows(outbox, 10)
  const joined = 'select s.id, l.product from sale s join sale_line l on l.sale = s.id where s.id = any($1)'
  expect(shown(await readRecordContentsThatFit(outbox, sourcesOf(joined), rows))).toEqual([
    'test.yaml: the query of "source" has 2 rows for the record 1: the query must return one',
    '{"id":2,"product":"nut"}',
    'test.yaml: the query of "source" has no row for the record 3',
  ])
})

test('ids are compared by the type that the query uses, in any notation', async () => {
  const { outbox, pool } = await setup({
    ddl: `create table thing (id uuid, n numeric); insert into thing values ('aaaaaaaa-0000-4000-8000-000000000001', 1)`,
  })
  await pool.query(`insert into outbox (type, payload) values ('order', '{"id": "AAAAAAAA-0000-4000-8000-000000000001"}'),
    ('order', '{"id": null}'), ('order', '[1]'), ('order', '{"id": "AAAAAAAA-0000-4000-8000-000000000001", "n": 2}')`)
  const read = await readRecordContentsThatFit(
    outbox,
    sourcesOf('select t.id, t.n from thing t where t.id = any($1) -- a comment'),
    await readWaitingRows(outbox, 10),
  )
  const noId = `the payload has no "id" (a text or a number). The query of the mapping file needs it to read the rest. Without \`payload\` in outbox.yaml it is the row's id`
  const thing = '{"id":"aaaaaaaa-0000-4000-8000-000000000001","n":1}'
  expect(shown(read)).toEqual([thing, noId, noId, thing])
})

test('if the query fails for one of many records, only that record is unreadable', async () => {
  const { outbox, pool } = await open()
  await pool.query(`insert into sale select n, 5, n, 'new' from generate_series(4, 40) n`)
  const failing = sourcesOf('select s.id, 100 / (s.id - 17) as part from sale s where s.id = any($1)')
  const rows = await readWaitingRows(outbox, 50)
  const read = await readContentsInBatches(outbox, failing, rows)
  expect(read.map(({ outboxId }) => outboxId)).toEqual(rows.map(({ outboxId }) => outboxId))
  expect(read.filter(({ unreadable }) => unreadable !== null)).toMatchObject([
    {
      outboxId: '17',
      type: 'order',
      unreadable: 'test.yaml: the query of "source" failed for the record 17: division by zero',
    },
  ])
})

test.each([
  ['a table that does not exist', 'select id from nothing where id = any($1)', /test.yaml: .*"nothing" does not exist/],
  ['no column id', 'select total from sale where id = any($1)', /column r.id does not exist/],
  ['a second parameter', 'select id from sale where id = any($1) and total > $2', /parameter/],
])('a query with %s fails for its type', async (_, sql, message) => {
  const { outbox } = await open()
  const refusal: unknown = await readRecordContentsThatFit(
    outbox,
    sourcesOf(sql),
    await readWaitingRows(outbox, 10),
  ).catch((error: unknown) => error)
  expect(String(refusal)).toMatch(message)
  expect(refusal).toBeInstanceOf(SourceFailed)
  expect(refusal).toMatchObject({ type: 'order', blame: 'type' })
})

test.each([
  ['writes', `with gone as (delete from sale returning id) select id from gone where id = any($1)`],
  ['calls a function that writes', `select id, tamper() from sale where id = any($1)`],
  ['takes a lock', `select id from sale where id = any($1) for update`],
])('a query that %s changes nothing', async (_, sql) => {
  const { outbox, pool } = await open()
  await pool.query(`create function tamper() returns int language sql as 'update sale set total = 0 returning 1'`)
  await expect(readRecordContentsThatFit(outbox, sourcesOf(sql), await readWaitingRows(outbox, 10))).rejects.toThrow(
    /top level|read-only/,
  )
  await expect(
    readRecordContentsThatFit(outbox, sourcesOf(sql), await readWaitingRows(outbox, 1)),
  ).rejects.toMatchObject({
    blame: 'type',
  })
  const { rows } = await pool.query('select count(*)::int as n, sum(total)::text from sale')
  expect(rows).toEqual([{ n: 3, sum: '100000000001234567890.10' }])
})

test('a document is found by a key of several columns, of which one is a character with blanks at its end', async () => {
  const { outbox, pool } = await setup({
    ddl: `create table head (tenant int, no char(8), total numeric, primary key (tenant, no)); insert into head values (3, 'A-7', 1.50)`,
  })
  await pool.query(`insert into outbox (type, payload) values ('order', '{"id": {"tenant": 3, "no": "A-7"}}')`)
  const mapping = mappingFrom(`type: order
endpoint: orders
document: { table: head, key: [tenant, no], condition: tenant > 0 and no <> '' }
source: >-
  select jsonb_build_object('tenant', h.tenant, 'no', h.no::text) as id, h.total
  from jsonb_populate_recordset(null::head, $1) k join head h on h.tenant = k.tenant and h.no = k.no
fields: { total: { from: total, type: "decimal(10,2)" } }
body: { total: "\${total}" }`)
  const rows = await readWaitingRows(outbox, 10)
  const [read] = await readRecordContentsThatFit(outbox, new Map([['order', mapping]]), rows)
  expect(read).toMatchObject({ payload: expect.stringContaining('"total":1.50') })
  expect(read?.noRecord).toBeUndefined()
})
