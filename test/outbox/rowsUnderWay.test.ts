import { expect, test } from 'vitest'
import type { Outbox } from '../../src/outbox/outbox.ts'
import { findRowsWithoutRecord } from '../../src/outbox/rowsUnderWay.ts'
import { setup } from './setup.ts'

/** The search for lost rows goes on after a row that raises an error when it is read. */

const markedIds = async (outbox: Outbox) =>
  (await findRowsWithoutRecord(outbox)).filter(({ isMarked }) => isMarked).map(({ outboxId }) => outboxId)
const ddl = `create table source (id bigint primary key, n int, state text default 'new',
  ratio int generated always as (10 / n) virtual)`
const table = `table: source
id: id
type: { constant: data }
payload: { columns: { ratio: ratio } }
state: { status: state, new: new, queued: taken, completed: done }
`
const said = `insert into source (id, n, state) values (1, 1, 'taken'), (2, 0, 'taken'), (3, 5, 'taken'), (4, 0, 'done')`

test('a row under way whose contents raise an error is found by its id', async () => {
  const { pool, outbox } = await setup({ ddl, yaml: table })
  await pool.query(said)
  expect(await markedIds(outbox)).toEqual(['1', '2', '3'])
})

test('a row for which the filter raises an error is left out, and others are found', async () => {
  const { pool, outbox } = await setup({ ddl, yaml: `${table}filter: ratio > 3\n` })
  await pool.query(said)
  expect(await markedIds(outbox)).toEqual(['1'])
})

test.each([
  [
    'a text',
    `state text default 'new'`,
    '{ status: state, new: new, queued: sent, completed: sent, failed: error }',
    `'sent'`,
  ],
  ['a flag', 'state boolean default false', '{ flag: state, set: [queued, completed] }', 'true'],
])('%s that marks captured and completed rows alike: a row of the ledger’s time is found, an older one is not', async (_, column, state, mark) => {
  const { pool, outbox } = await setup({
    ddl: `create table source (id bigint primary key, ${column}, created_at timestamptz not null)`,
    yaml: `table: source
id: id
created_at: created_at
type: { constant: data }
payload: { columns: { id: id } }
state: ${state}
`,
  })
  await outbox.open()
  await pool.query(`insert into source (id, state, created_at) values
    (1, ${mark}, '2026-01-01'), (2, ${mark}, clock_timestamp() + interval '1 minute')`)
  expect(await markedIds(outbox)).toEqual(['2'])
})
