import { expect, test } from 'vitest'
import { readProblems } from '../../src/ledger/problems.ts'
import { TableSurveys } from '../../src/outbox/survey.ts'
import { type Setup, setup } from '../outbox/setup.ts'

/** A row with an unknown status is never captured, so it has to be reported. */

const survey = ({ outbox }: Setup) => new TableSurveys(outbox, 2).runOnce(() => true)
const told = async ({ pool }: Setup) => (await readProblems(pool, 10)).map(({ kind, detail }) => `${kind}: ${detail}`)
const withoutCheck = 'alter table outbox drop constraint if exists outboxd_knows_status'
const insert = (...statuses: string[]) =>
  statuses.map((status) => `insert into outbox (type, payload, status) values ('data', '{}', '${status}')`).join(';')

test('our own table refuses an unknown status', async () => {
  const { pool } = await setup()
  for (const status of ['NEW', 'pending', 'new ', ''])
    await expect(pool.query(insert(status))).rejects.toThrow('outboxd_knows_status')
  await pool.query(insert('new', 'completed'))
})

test('unknown statuses of a table without the check are reported', async () => {
  const given = await setup()
  const { pool } = given
  await pool.query(`${withoutCheck}; ${insert('NEW', 'new')}`)
  expect(await given.capture()).toEqual(['2'])
  await survey(given)
  expect(await told(given)).toEqual([expect.stringContaining('"NEW" (1 row, the first is 1)')])
  await pool.query(`update outbox set status = 'new' where id = 1`)
  await survey(given)
  expect(await told(given)).toEqual([])
})

const described = `table: source
id: id
type: { constant: data }
payload: payload
filter: not mine
`
const ddl = `create table source (id bigint generated always as identity primary key, payload jsonb default '{}', mine boolean default false,
  status text, done boolean)`
const forms: [string, string, RegExp | null][] = [
  [
    'marked on capture',
    'state: { status: status, new: [open, again], queued: taken, completed: sent }',
    /"draft" \(2 rows, the first is 1\), NULL \(1 row, the first is 3\)/,
  ],
  ['marked at the end', 'state: { status: status, new: open, completed: sent }', /"draft" \(2 rows.*NULL \(1 row/],
  ['with NULL for waiting rows', 'state: { status: status, new: [null, open], completed: sent }', /^((?!NULL).)*$/],
  ['without values for other states', 'state: { status: status, new: open }', null],
  ['a flag that is NULL', 'state: { flag: done, set: [queued] }', /NULL \(5 rows, the first is 1\)/],
  ['a flag with NULL for waiting rows', 'state: { flag: done, new: [null, false], set: [queued] }', null],
  ['none', 'state: none\nsequence: id', null],
]

test.each(
  forms,
)('rows whose state has an unknown value are reported, unless the filter excludes them: %s', async (_, state, want) => {
  const given = await setup({ ddl, yaml: described + state })
  await given.pool.query(`insert into source (status) values ('draft'), ('draft'), (null), ('sent'), ('open');
    insert into source (status, mine) values ('archived', true)`)
  await survey(given)
  const found = (await told(given)).filter((each) => each.startsWith('unknown_status'))
  expect(found).toEqual(want === null ? [] : [expect.stringMatching(want)])
  for (const each of found) expect(each).not.toMatch(/archived|sent"|open"/)
})

test('a row whose flag is NULL is an `unknown_status`', async () => {
  const given = await setup({ ddl, yaml: `${described}state: { flag: done, set: [queued] }` })
  await given.pool.query('insert into source (done) values (false), (null)')
  await survey(given)
  expect(await told(given)).toEqual([expect.stringContaining('unknown_status: rows have a status')])
})

test('several rounds read a large table, and the problem stays until the end was reached', async () => {
  const given = await setup()
  await given.pool.query(`${withoutCheck}; ${insert('NEW', 'completed', 'completed', 'NEW', 'pending')}`)
  const surveys = new TableSurveys(given.outbox, 2)
  const round = () => surveys.runOnce(() => false)
  await round()
  expect(await told(given)).toEqual([expect.stringMatching(/"NEW" \(1 row, the first is 1\), and perhaps more/)])
  await round()
  await round()
  expect(await told(given)).toEqual([
    expect.stringMatching(/"NEW" \(2 rows, the first is 1\), "pending" \(1 row, the first is 5\)$/),
  ])
  await given.pool.query(`update outbox set status = 'completed'`)
  await round()
  expect(await told(given)).toHaveLength(1)
  await round()
  await round()
  expect(await told(given)).toEqual([])
})

test('a row of a view without an id is not captured, and does not affect the order', async () => {
  const given = await setup({
    ddl: `create table base (id bigint, region int, key text, taken boolean default false);
      create view source as select * from base`,
    yaml: `table: source\nid: id\nid_unique: promised\ntype: { constant: data }\nkey: key\npayload: { columns: [region] }
state: { flag: taken, set: [queued] }`,
  })
  await given.pool.query(
    `insert into source values (1, 1, 'k'), (2, 1, 'k'), (3, 1, null), (null, 1, 'l'), (null, 1, 'k')`,
  )
  const form = await given.connect()
  await form.query('begin; select from base where id = 1 for update')
  expect(await given.capture()).toEqual(['3'])
  await form.query('commit')
  expect(await given.capture()).toEqual(['1', '2'])
  expect(await given.capture()).toEqual([])
})
