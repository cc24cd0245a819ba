import { expect, onTestFinished, test } from 'vitest'
import { examineSourceQueries } from '../../src/outbox/examineSourceQueries.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mappingFrom } from '../mapping/mappingOf.ts'
import { openPool } from '../support/postgres.ts'
import { setup, tableOf } from './setup.ts'

const table = 'table: sale\nid: id\ntype: { constant: order }\nstate: { status: state, new: new, queued: taken }'
const mappingsOf = (sql: string) => {
  const body = 'fields: { total: { from: total, type: "decimal(12,2)" } }\nbody: { total: "${total}" }'
  return new Map([['order', mappingFrom(`type: order\nendpoint: orders\nsource: ${JSON.stringify(sql)}\n${body}`)]])
}
const open = () =>
  setup({
    ddl: `create table sale (id int primary key, total numeric, state text default 'new');
      create table "Sale Line" ("Sale" int, price numeric);
      insert into sale values (1, 1.10), (2, 2.20);
      insert into "Sale Line" select n, n from generate_series(1, 2) n`,
    yaml: table,
  })
const lines = `select s.id, s.total, (select sum(l.price) from "Sale Line" l where l."Sale" = s.id) as lines from sale s where s.id = any($1)`

test('a working query is reported with the time that it took for waiting rows', async () => {
  const { outbox } = await open()
  const { trialResult, ...wrong } = await examineSourceQueries(outbox, mappingsOf(lines))
  expect(wrong).toEqual({ problems: [], warnings: [] })
  expect(trialResult).toMatch(/^2 waiting rows read in \d+ ms$/)
})

test('without a query nothing is examined', async () => {
  const { outbox } = await setup()
  const mapping = mappingFrom('type: data\nendpoint: data\nfields: {}\nbody: { a: b }')
  expect(await examineSourceQueries(outbox, new Map([['data', mapping]]))).toEqual({
    problems: [],
    warnings: [],
    trialResult: null,
  })
})

test('a table that our user may not read is a problem, with the grants', async () => {
  const { url, pool } = await open()
  await pool.query(`create role "reader of sales" login password 'x'; grant select on sale to "reader of sales"; create schema stock;
    create table stock.item (id int)`)
  onTestFinished(async () => {
    await pool.query('drop owned by "reader of sales"; drop role "reader of sales"')
  })
  const as = openPool(Object.assign(new URL(url), { username: 'reader%20of%20sales', password: 'x' }).href)
  onTestFinished(() => as.end())
  const outbox = new Outbox(as, tableOf(table), 1_000, pool)
  const sql = lines.replace('from sale s', 'from sale s left join stock.item i on i.id = s.id')
  expect((await examineSourceQueries(outbox, mappingsOf(sql))).problems).toEqual([
    [
      'test.yaml: the query of "source" fails: permission denied for schema stock',
      '  grant usage on schema stock to "reader of sales";',
      '  grant select on public."Sale Line" to "reader of sales";',
      '  grant select on stock.item to "reader of sales";',
    ].join('\n'),
  ])
})

test.each([
  [
    'select id from nothing where id = any($1)',
    'test.yaml: the query of "source" fails: relation "nothing" does not exist',
  ],
  [
    'select total from sale s where s.id = any($1)',
    'test.yaml: the query of "source" fails: column r.id does not exist. The query must return a column "id", which says which record a row is for',
  ],
])('an invalid query is a problem: %s', async (sql, problem) => {
  const { outbox } = await open()
  expect((await examineSourceQueries(outbox, mappingsOf(sql))).problems).toEqual([problem])
})

test('waiting rows that will be rejected are named in a warning', async () => {
  const { outbox } = await open()
  const { warnings } = await examineSourceQueries(
    outbox,
    mappingsOf('select s.id, 1 / (s.id - 2) as total from sale s where s.id = any($1)'),
  )
  expect(warnings).toEqual([
    '1 of 2 waiting rows will be rejected, because their contents cannot be read:\n  outbox:2: test.yaml: the query of "source" failed for the record 2: division by zero',
  ])
})

test('the condition of documents is examined, too', async () => {
  const { outbox } = await setup({ ddl: 'create table sale (id int primary key)' })
  const mappings = (condition: string) => {
    const document = `document: { table: public.sale, key: id, condition: ${condition} }`
    const source = 'source: select id from sale where id = any($1)'
    return new Map([
      ['order', mappingFrom(`type: order\nendpoint: orders\n${document}\n${source}\nfields: {}\nbody: { a: b }`)],
    ])
  }
  expect((await examineSourceQueries(outbox, mappings('h.state = 1'))).problems).toEqual([
    'the condition of public.sale fails: column h.state does not exist',
  ])
  expect(await examineSourceQueries(outbox, mappings('h.id > 0'))).toMatchObject({ problems: [], warnings: [] })
})
