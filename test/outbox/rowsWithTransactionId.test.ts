import { expect, test } from 'vitest'
import { readCapturedRowsWithTransactionId } from '../../src/outbox/rowsWithTransactionId.ts'
import { setup } from './setup.ts'

/** After a restore the rows may name transactions that the ledger does not know. */

const marked = `table: source
id: id
type: { constant: data }
payload: payload
state: { status: state, new: new, queued: BUSY, accepted: SENT, completed: DONE, failed: BAD }
write: { tx: transaction_id }
`
const columns = "payload jsonb not null default '{\"a\": 1}', state text default 'new', tx text"

test('captured rows that name a transaction are read in any state', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, ${columns})`,
    yaml: marked,
  })
  await pool.query('insert into source (id) select generate_series(1, 5)')
  await capture()
  await pool.query(`update source set state = 'SENT', tx = 'T-2' where id = 2`)
  await pool.query(`update source set state = 'DONE', tx = ' ' where id = 3`)
  await pool.query(`update source set state = 'new', tx = 'T-4' where id = 4`)
  await pool.query(`delete from source where id = 5`)
  expect(await readCapturedRowsWithTransactionId(outbox, ['1', '2', '3', '4', '5', '99'])).toEqual([
    { outboxId: '2', said: 'SENT', transactionId: 'T-2' },
    { outboxId: '4', said: 'new', transactionId: 'T-4' },
  ])
})

test('a different row with the id is left out, and an edited row is read', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, made timestamptz not null default '2026-11-01', ${columns})`,
    yaml: `${marked}created_at: made`,
  })
  await pool.query('insert into source (id) select generate_series(1, 2)')
  await capture()
  await pool.query(`update source set tx = 'T-' || id, state = 'DONE', payload = '{"a": 2}'`)
  await pool.query(`update source set made = '2026-11-02' where id = 1`)
  expect(await readCapturedRowsWithTransactionId(outbox, ['1', '2'])).toEqual([
    { outboxId: '2', said: 'DONE', transactionId: 'T-2' },
  ])
})

test('a row for which the filter raises an error is read, and so are others', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, n int, state text default 'new', tx text,
      ratio int generated always as (10 / n) virtual)`,
    yaml: `${marked.replace('payload: payload', 'payload: { columns: { ratio: ratio } }')}filter: ratio < 100\n`,
  })
  await pool.query('insert into source (id, n) values (1, 1), (2, 2), (3, 3)')
  await capture()
  await pool.query(`update source set state = 'SENT', tx = 'T-' || id, n = case id when 2 then 0 else n end`)
  expect(
    (await readCapturedRowsWithTransactionId(outbox, ['1', '2', '3'])).map(({ transactionId }) => transactionId),
  ).toEqual(['T-1', 'T-2', 'T-3'])
})

test.each([
  ['uuid', '0196aa00-0000-7000-8000-000000000001'],
  ['text', 'a b'],
])('a row is found by an id of type %s, even beside an id that does not fit that type', async (type, id) => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id ${type} primary key, ${columns})`,
    yaml: marked,
  })
  await pool.query('insert into source (id) values ($1)', [id])
  await expect.poll(() => capture()).toEqual([id])
  await pool.query(`update source set tx = 'T-1', state = 'SENT'`)
  expect(await readCapturedRowsWithTransactionId(outbox, [id, 'no id of this table'])).toEqual([
    { outboxId: id, said: 'SENT', transactionId: 'T-1' },
  ])
})

test('a transaction in a jsonb column is read as text', async () => {
  const { pool, outbox, capture } = await setup({
    ddl: `create table source (id bigint primary key, payload jsonb default '{}', state text default 'new', tx jsonb)`,
    yaml: marked,
  })
  await pool.query('insert into source (id) select generate_series(1, 2)')
  await capture()
  await pool.query(`update source set tx = '"T-1"', state = 'SENT' where id = 1`)
  expect(await readCapturedRowsWithTransactionId(outbox, ['1'])).toEqual([
    { outboxId: '1', said: 'SENT', transactionId: 'T-1' },
  ])
})
