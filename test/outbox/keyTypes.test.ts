import { expect, test } from 'vitest'
import type { RowStatus } from '../../src/model/outbox.ts'
import { readRecordWithoutQueriedContent } from '../../src/outbox/readRows.ts'
import { setup } from './setup.ts'

/** Two values for each type, in sort order, that a careless cast would take for the same value. */
const types: [type: string, first: string, second: string, ddl?: string][] = [
  ['smallint', '1', '12'],
  ['integer', '7', '70'],
  ['bigint', '9007199254740992', '9007199254740993'],
  ['numeric', '1.05', '12345678901234567890.5'],
  ['numeric(6,2)', '1.00', '1.10'],
  ['real', '1.1', '1.2'],
  ['double precision', '0.1', '0.30000000000000004'],
  ['text', 'A', 'AB'],
  ['varchar(3)', 'B', 'BA'],
  ['char(4)', 'B', 'BA'],
  ['bpchar', 'B', 'BA'],
  ['"char"', 'a', 'b'],
  ['name', 'a', 'ab'],
  ['uuid', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002'],
  ['bytea', '\\x00', '\\x0001'],
  ['date', '2026-10-25', '2026-11-01'],
  ['timestamp', '2026-10-25 02:30:00', '2026-10-25 02:30:00.000001'],
  ['timestamptz', '2026-10-25 02:30:00+02', '2026-10-25 02:30:00+01'],
  ['bit(3)', '001', '010'],
  ['bit varying', '1', '10'],
  ['boolean', 'false', 'true'],
  ['inet', '10.0.0.1/8', '10.0.0.1'],
  ['grade', 'low', 'high', `create type grade as enum ('low', 'high')`],
  ['letters', 'B', 'BA', 'create domain letters as char(4)'],
  ['name2', 'B', 'BA', `create domain name1 as varchar(3); create domain name2 as name1 check (value <> 'nope')`],
  ['bits', '101', '111', 'create domain bits as bit(3)'],
  ['citext', 'a', 'AB', 'create extension citext'],
]

const told = (outboxId: string, transactionId: string): RowStatus => ({
  outboxId,
  state: 'completed',
  transactionId,
  errorCode: null,
  error: null,
})

test.each(types)('each row gets its own outcome if ids are of type %s', async (type, first, second, ddl = '') => {
  const { pool, outbox, report, capture } = await setup({
    ddl: `${ddl}; create table message (id ${type} primary key, state text not null default 'N', tx text, body text);
      insert into message (id, body) values ('${first}', '1'), ('${second}', '2')`,
    yaml: `
table: message
id: id
type: { constant: data }
payload: body
state: { status: state, new: N, queued: Q, completed: C }
write: { tx: transaction_id }`,
  })
  const rows = async () => (await pool.query('select body, state, tx from message order by body')).rows
  const [one = ''] = await capture(1)
  expect(await rows()).toEqual([
    { body: '1', state: 'Q', tx: null },
    { body: '2', state: 'N', tx: null },
  ])
  const [two = ''] = await capture()
  expect(await capture()).toEqual([])
  expect([
    await readRecordWithoutQueriedContent(outbox, one),
    await readRecordWithoutQueriedContent(outbox, two),
  ]).toMatchObject([
    { outboxId: one, payload: '1' },
    { outboxId: two, payload: '2' },
  ])
  await report(told(one, 'TX-1'))
  expect(await rows()).toEqual([
    { body: '1', state: 'C', tx: 'TX-1' },
    { body: '2', state: 'Q', tx: null },
  ])
  await report(told(two, 'TX-2'))
  expect(await rows()).toMatchObject([{ tx: 'TX-1' }, { tx: 'TX-2' }])
})

test.each(
  types.filter(([type]) => type !== 'boolean'),
)('an id of type %s is recognised if the ledger remembers what was captured', async (type, first, second, ddl = '') => {
  const { capture } = await setup({
    ddl: `${ddl}; create table message (id ${type} primary key, body text, done_at timestamptz);
        insert into message (id, body) values ('${first}', '1'), ('${second}', '2')`,
    yaml: 'table: message\nid: id\ntype: { constant: data }\npayload: body\nstate: { timestamp: done_at, set: [completed] }',
  })
  expect(await capture(1)).toHaveLength(1)
  expect(await capture()).toHaveLength(1)
  expect(await capture()).toEqual([])
})

test.each([
  ['letters', 'a word'],
  ['bigint', 'abc'],
  ['uuid', '12'],
  ['date', '2026-13-45'],
  ['bytea', '\\xz'],
  ['bit(3)', 'abc'],
])('a text that is not a valid %s finds no row, and raises no error', async (type, id) => {
  const { outbox } = await setup({
    ddl: `create domain letters as text check (value ~ '^[a-z]+$');
      create table message (id ${type} primary key, body text, done_at timestamptz)`,
    yaml: 'table: message\nid: id\ntype: { constant: data }\npayload: body\nstate: { timestamp: done_at, set: [completed] }',
  })
  expect(await readRecordWithoutQueriedContent(outbox, id)).toBeNull()
})
