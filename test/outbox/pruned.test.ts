import { describe, expect, test } from 'vitest'
import { raiseRowConflicts } from '../../src/ledger/rowConflicts.ts'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { readPruneOverdueMs } from '../../src/outbox/prune.ts'
import { findRowsWithoutRecord } from '../../src/outbox/rowsUnderWay.ts'
import { clearStaleProblems, surveyTable } from '../../src/outbox/survey.ts'
import { completeAgo, endAgo, pruneAll } from '../support/retention.ts'
import { rests, setup } from './setup.ts'
import { appendOnly, common, ddl, endOnly, tableForms } from './tableForms.ts'

/** Retention never makes a row be sent again by itself, in any form of table. */

const days = { days: 30, payloadDays: null }
const records = 'select outbox_id as id from outboxd.submission order by outbox_id'

describe.each(Object.entries(tableForms))('%s', (_, form) => {
  test('a record that ended and whose row no longer waits is deleted, and its row is not captured again', async () => {
    const { pool, capture, outbox } = await setup(form)
    await pool.query(`insert into source (key) select 'k' from generate_series(1, 5)`)
    expect(await capture()).toHaveLength(5)
    await rests({ capture, outbox })
    await completeAgo(pool, 31)
    await pool.query('update source set done_at = now()')
    expect(await pruneAll(pool, days, outbox)).toMatchObject({ submissions: 5, end: 'through' })
    expect(await capture()).toEqual([])
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 0 })
    expect(await surveyTable(outbox, () => true)).toMatchObject({ idsBehind: [] })
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['6'])
  })
})

test('end only: the record of a row that still says that it waits stays, and does not count as overdue', async () => {
  const { pool, capture, outbox } = await setup(endOnly)
  await pool.query('insert into source select from generate_series(1, 3)')
  await capture()
  await pool.query(`update outboxd.submission set state = 'discarded', due_at = null, ended_at = now()`)
  await endAgo(pool, 31)
  await pool.query('update source set done_at = now() where id = 2')
  expect(await pruneAll(pool, days, outbox)).toMatchObject({ submissions: 1, end: 'through' })
  expect((await pool.query(records)).rows).toEqual([{ id: '1' }, { id: '3' }])
  expect(await readPruneOverdueMs(outbox, days)).toBe(0)
  expect(await capture()).toEqual([])
})

test('marked: the record of a row that says that it is under way stays, because the row was not told its end', async () => {
  const { pool, capture, outbox } = await setup({
    ddl: `${ddl}; alter table source add status text default 'new'`,
    yaml: `${common}\nstate: { status: status, new: new, queued: queued, completed: completed }`,
  })
  await pool.query('insert into source select from generate_series(1, 2)')
  await capture()
  await completeAgo(pool, 31)
  await pool.query(`update source set status = 'completed' where id = 2`)
  expect(await pruneAll(pool, days, outbox)).toMatchObject({ submissions: 1, end: 'through' })
  expect((await pool.query(records)).rows).toEqual([{ id: '1' }])
})

test('append-only: the record of a row ahead of the position stays', async () => {
  const { pool, capture, outbox, connect } = await setup(appendOnly)
  const late = await connect()
  await late.query('begin; insert into source default values')
  await pool.query('insert into source default values')
  expect(await capture()).toEqual(['2'])
  await completeAgo(pool, 31)
  expect(await pruneAll(pool, days, outbox)).toMatchObject({ submissions: 0, end: 'through' })
  expect(await capture()).toEqual([])
  await late.query('commit')
  expect(await capture()).toEqual(['1'])
})

test('marked: a row that the ERP sets back to waiting after its record was deleted is sent', async () => {
  const { pool, capture, outbox } = await setup(tableForms.marked)
  await pool.query('insert into source default values')
  await capture()
  await completeAgo(pool, 31)
  await pruneAll(pool, days, outbox)
  await pool.query('update source set taken = false')
  expect(await capture()).toEqual(['1'])
})

test('append-only: a row that appears behind the position is told from rows whose records were deleted', async () => {
  const { pool, capture, outbox } = await setup(appendOnly)
  await pool.query(`insert into source (id) overriding system value select n from generate_series(1, 9) n where n <> 4;
    select setval('source_id_seq', 9)`)
  await capture()
  await capture()
  await completeAgo(pool, 31)
  await pool.query(`update outboxd.submission set ended_at = now() where outbox_id in ('1', '6', '7', '8', '9')`)
  expect(await pruneAll(pool, days, outbox)).toMatchObject({ submissions: 3 })
  await pool.query(`delete from source where id = 7; insert into source (id) overriding system value values (4)`)
  const behind = async () => (await surveyTable(outbox, () => true)).idsBehind
  // 2, 3 and 5 have no record any more, so 4 may be one of those.
  expect(await behind()).toEqual([])
  await pool.query(
    `begin; set local session_replication_role = replica; delete from outboxd.submission where outbox_id = '8'; commit`,
  )
  expect(await behind()).toEqual(['8'])
  expect(await capture()).toEqual([])
})

test('an id that does not fit the present type of the column has no row, so its record and its problem are deleted', async () => {
  const { pool, capture, describedAs } = await setup({
    ddl: ddl.replace('bigint generated always as identity', 'text'),
    yaml: tableForms.marked.yaml,
  })
  await pool.query(`insert into source (id) values ('INV-1'), ('2')`)
  await capture()
  await completeAgo(pool, 31)
  await raiseRowConflicts(pool, [{ outboxId: 'INV-1', detail: 'a different row' }])
  await pool.query(`delete from source where id = 'INV-1'; update source set taken = false;
    alter table source alter id type bigint using id::bigint`)
  const { outbox } = describedAs(tableForms.marked.yaml)
  expect(await readPruneOverdueMs(outbox, days)).toBeGreaterThan(86_000_000)
  await clearStaleProblems(outbox, async () => true)
  expect((await pool.query('select kind from outboxd.problem')).rows).toEqual([])
  expect(await pruneAll(pool, days, outbox)).toMatchObject({ submissions: 1, end: 'through' })
  expect((await pool.query(records)).rows).toEqual([{ id: '2' }])
})

test('if one mark says both captured and done, the row of a deleted record does not count as lost', async () => {
  const { pool, capture, outbox, describedAs } = await setup({
    ddl: `${ddl}; alter table source add created_at timestamptz default now()`,
    yaml: `${common}\ncreated_at: created_at\nstate: { flag: taken, set: [queued, completed] }`,
  })
  await pool.query('insert into source select from generate_series(1, 2)')
  await capture()
  await completeAgo(pool, 31)
  await pool.query(`update outboxd.submission set recorded_at = clock_timestamp()`)
  await pruneAll(pool, days, outbox)
  const again = describedAs(`${common}\ncreated_at: created_at\nstate: { flag: taken, set: [queued, completed] }`)
  expect(await findRowsWithoutRecord(again.outbox)).toEqual([])
})
