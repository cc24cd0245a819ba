import { expect, test } from 'vitest'
import { readRowsUnderWay } from '../../src/outbox/rowsUnderWay.ts'
import { setup } from './setup.ts'

/** The comparison with the ledger goes on after a row that raises an error when it is read. */

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
  const slice = await readRowsUnderWay(outbox, await outbox.open(), { after: null, upTo: null })
  expect(slice?.unknown.map(({ outboxId, stamp }) => [outboxId, stamp.split(/[ :]/)[0]])).toEqual([
    ['1', 'content'],
    ['2', 'unreadable'],
    ['3', 'content'],
  ])
})

test('a row for which the filter raises an error is left out, and others are found', async () => {
  const { pool, outbox } = await setup({ ddl, yaml: `${table}filter: ratio > 3\n` })
  await pool.query(said)
  expect(
    (await readRowsUnderWay(outbox, await outbox.open(), { after: null, upTo: null })).unknown.map(
      ({ outboxId }) => outboxId,
    ),
  ).toEqual(['1'])
})
