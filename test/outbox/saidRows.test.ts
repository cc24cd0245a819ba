import { describe, expect, test } from 'vitest'
import { readSaid } from '../../src/outbox/saidRows.ts'
import { setup } from './setup.ts'

/** After a restore the rows may say more of records than the ledger does. */

const marked = `table: source
id: id
type: { constant: data }
payload: payload
state: { status: state, new: new, queued: BUSY, accepted: SENT, completed: DONE, failed: BAD }
write: { tx: transaction_id }
`
const columns = "payload jsonb not null default '{\"a\": 1}', state text default 'new', tx text"
const said = (outboxId: string, more: object) => ({ outboxId, said: null, isEnd: false, transactionId: null, ...more })

test('a row says its state where that is more than queued, its transaction, and that it came to its end', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, ${columns})`,
    yaml: marked,
  })
  await pool.query('insert into source (id) select generate_series(1, 7)')
  await capture()
  await pool.query(`update source set state = 'SENT', tx = 'T-2' where id = 2`)
  await pool.query(`update source set state = 'DONE', tx = ' ' where id = 3`)
  await pool.query(`update source set state = 'BAD' where id = 4`)
  await pool.query(`update source set state = 'new', tx = 'T-5' where id = 5`)
  await pool.query(`update source set state = null where id = 6`)
  await pool.query(`delete from source where id = 7`)
  expect(await readSaid(outbox, ['1', '2', '3', '4', '5', '6', '7', '99'])).toEqual([
    said('1', {}),
    said('2', { said: 'SENT', transactionId: 'T-2' }),
    said('3', { said: 'DONE', isEnd: true }),
    said('4', { said: 'BAD' }),
    said('5', { transactionId: 'T-5' }),
    said('6', {}),
  ])
})

test('another row of the same id says nothing; one that was edited says what it says, unless it waits', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, kind text not null default 'data', ${columns})`,
    yaml: marked.replace('{ constant: data }', '{ column: kind }'),
  })
  await pool.query('insert into source (id) select generate_series(1, 3)')
  await capture()
  await pool.query(`update source set tx = 'T-' || id, state = 'DONE'`)
  await pool.query(`update source set kind = 'other' where id = 1`)
  await pool.query(`update source set payload = '{"a": 2}' where id > 1`)
  await pool.query(`update source set state = 'new' where id = 3`)
  expect(await readSaid(outbox, ['1', '2', '3'])).toEqual([
    said('2', { said: 'DONE', isEnd: true, transactionId: 'T-2' }),
  ])
})

test('a filter and a stamp that fail for a row: it says what it says, and so do those around it', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, n int, state text default 'new', tx text,
      ratio int generated always as (10 / n) virtual)`,
    yaml: `${marked.replace('payload: payload', 'payload: { columns: { ratio: ratio } }')}filter: ratio < 100\n`,
  })
  await pool.query('insert into source (id, n) values (1, 1), (2, 2), (3, 3)')
  await capture()
  await pool.query(`update source set state = 'SENT', tx = 'T-' || id, n = case id when 2 then 0 else n end`)
  expect((await readSaid(outbox, ['1', '2', '3'])).map(({ transactionId }) => transactionId)).toEqual([
    'T-1',
    'T-3',
    'T-2',
  ])
})

describe.each([
  ['a time that is set as the row is taken says no more', 'state: { timestamp: at, set: [queued] }', null, false],
  ['a time at the end', 'state: { timestamp: at, set: [completed, failed] }', /^at 2026-11-01/, true],
  [
    'a time at failures alone is no end that may be completed',
    'state: { timestamp: at, set: [failed] }',
    /^at /,
    false,
  ],
  ['a flag at the end', 'state: { flag: flag, set: [completed, discarded] }', /^true$/, true],
  ['a flag as the row is taken', 'state: { flag: flag, set: [queued, completed] }', null, false],
  ['no state', 'state: none', null, false],
  ['no state, and ours written elsewhere', 'state: none\nwrite: { word: state }', /^completed$/, true],
  ['no state, and a time at the end', 'state: none\nwrite: { at: { what: now, on: [completed] } }', /^at /, true],
  ['a word of the ERP alone', 'state: { status: word, new: new }', null, false],
])('%s', (_, yaml, text, isEnd) => {
  test.each([
    ['uuid', '0196aa00-0000-7000-8000-000000000001'],
    ['text', 'a b'],
  ])('by an id of type %s', async (type, id) => {
    const { pool, outbox, capture } = await setup({
      ddl: `create table source (id ${type} primary key, payload jsonb, word text default 'new', at timestamptz, flag boolean default false)`,
      yaml: `table: source\nid: id\ntype: { constant: data }\npayload: payload\n${yaml}\n`,
    })
    await pool.query(`insert into source (id, payload) values ($1, '{}')`, [id])
    await expect.poll(() => capture()).toEqual([id])
    await pool.query(`update source set word = 'completed', at = '2026-11-01T00:00:00Z', flag = true`)
    const [row] = await readSaid(outbox, [id, 'no id of this table'])
    if (text === null) expect(row?.said ?? null).toBeNull()
    else expect(row?.said).toMatch(text)
    expect([row?.isEnd, row?.transactionId]).toEqual([isEnd, null])
  })
})

test('a transaction in a column of jsonb, as text', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, payload jsonb default '{}', state text default 'new', tx jsonb)`,
    yaml: marked,
  })
  await pool.query('insert into source (id) select generate_series(1, 2)')
  await capture()
  await pool.query(`update source set tx = '"T-1"', state = 'SENT' where id = 1`)
  expect(await readSaid(outbox, ['1'])).toEqual([said('1', { said: 'SENT', transactionId: 'T-1' })])
})
