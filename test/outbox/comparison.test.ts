import { expect, test } from 'vitest'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { createPeriodicTableComparison } from '../../src/outbox/comparison.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { rests, type Setup, setup } from '../outbox/setup.ts'

/**
 * The comparison finds waiting rows behind the cursor, which no scan would read, and rows that are behind the ledger.
 */

const ddl = `create table source (id bigint generated always as identity primary key, payload jsonb default '{}')`
const common = 'table: source\nid: id\ntype: { constant: data }\npayload: payload\nstate: none\n'
const sequence = `${common}sequence: id\n`
const problems = async ({ ledger }: Setup) => (await ledger.query('select kind, detail from outboxd.problem')).rows
const compare = ({ ledger, outbox }: Setup) =>
  createPeriodicTableComparison({ ledger, outbox, who: 'test' }).runOnce(0, () => true)
const load = ({ pool }: Setup, ids: string) =>
  pool.query(`insert into source (id) overriding system value values ${ids}`)

/** Rows 1, 3 and 5 are captured, and the cursor has passed them. */
async function passed(yaml: string): Promise<Setup> {
  const given = await setup({ ddl, yaml })
  await given.pool.query('insert into source select from generate_series(1, 5); delete from source where id in (2, 4)')
  expect(await given.capture()).toEqual(['1', '3', '5'])
  await rests(given)
  return given
}

test('rows that were loaded behind the cursor are reported, and captured once by any instance', async () => {
  const given = await passed(sequence)
  const another = given.describedAs(sequence)
  await rests(another)
  expect(await compare(given)).toBe('done')
  expect(await problems(given)).toEqual([])
  await load(given, '(2), (4)')
  expect(await another.capture()).toEqual([])
  expect(await compare(given)).toBe('done')
  expect(await problems(given)).toEqual([
    { kind: 'rows_passed_over', detail: expect.stringMatching(/^2 rows waited .*\(the first is 2\)/) },
  ])
  expect(await readBacklog(another.outbox)).toMatchObject({ waiting: 2 })
  expect(await mayHaveWaitingRows(another.outbox)).toBe(true)
  expect(await another.capture()).toEqual(['2', '4'])
  await rests(another)
  expect(await given.capture()).toEqual([])
  expect(await compare(given)).toBe('done')
  expect(await problems(given)).toEqual([])
})

test('a row behind the cursor is also found in the order of transactions', async () => {
  const given = await passed(common)
  await load(given, '(2)')
  // Moves the cursor up to the row's transaction, which is older than all running ones.
  const settle = `update outboxd.outbox_cursor set position[1] = o.xmin::text from source o
    where o.id = 2 and o.xmin::text::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint`
  await expect.poll(async () => (await given.ledger.query(settle)).rowCount).toBe(1)
  expect(await given.capture()).toEqual([])
  expect(await compare(given)).toBe('done')
  expect(await given.capture()).toEqual(['2'])
})

test('rows after the cursor or before the start position are not reported', async () => {
  const given = await passed(sequence)
  await given.ledger.query(`update outboxd.ledger set start_id = '3'`)
  await given.capture()
  await given.pool.query('insert into source default values')
  await load(given, '(2)')
  expect(await compare(given)).toBe('done')
  expect(await problems(given)).toEqual([])
})

test('a table that is too large for one comparison is compared in several', async () => {
  const given = await passed(sequence)
  await load(given, '(4)')
  const comparison = createPeriodicTableComparison({ ...given, who: 'test', slicesMax: 1, sliceRows: 2 })
  expect(await comparison.runOnce(0, () => true)).toBe('done')
  expect(await problems(given)).toEqual([])
  expect(await comparison.runOnce(0, () => true)).toBe('done')
  expect(await problems(given)).toMatchObject([{ kind: 'rows_passed_over' }])
  expect(await given.capture()).toEqual(['4'])
})

test('a table that cannot be read by its ids in time is not compared, without an error', async () => {
  const given = await setup({
    ddl: `${ddl}; create table gate (shut boolean); create function slow(bigint) returns boolean immutable language plpgsql as
      $$ begin if exists (select from gate) then perform pg_sleep(5); end if; return true; end $$`,
    yaml: `${sequence}filter: slow(id)`,
  })
  await given.pool.query('insert into source default values')
  expect(await given.capture()).toEqual(['1'])
  await rests(given)
  await given.pool.query('insert into gate values (true)')
  await given.pool.query(`set statement_timeout = '2s'`) // for the only connection of this pool
  expect(await compare(given)).toBe('done')
  expect(await problems(given)).toEqual([])
})

test('if a row says that it is under way after the end of its record, the outcome is written back again', async () => {
  const given = await setup()
  await given.pool.query(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, 3)`)
  expect(await given.capture()).toEqual(['1', '2', '3'])
  await given.ledger.query(
    `update outboxd.submission set state = 'completed', due_at = null, ended_at = now(), transaction_id = outbox_id, report_due = false
     where outbox_id <> '3'`,
  )
  await given.pool.query(`update outbox set status = 'completed' where id = 2`)
  expect(await compare(given)).toBe('done')
  const due = async () =>
    (await given.ledger.query('select outbox_id as id from outboxd.submission where report_due order by outbox_id'))
      .rows
  expect(await due()).toEqual([{ id: '1' }])

  await given.ledger.query(
    `insert into outboxd.pruned_submission (id, outbox_id, type, row_created, recorded_at, state, ended_at, transaction_id)
     select gen_random_uuid(), '4', type, null, recorded_at, 'completed', now(), '4' from outboxd.submission where outbox_id = '1'`,
  )
  await given.pool.query(`insert into outbox (type, payload, status) values ('data', '{}', 'accepted')`)
  expect(await compare(given)).toBe('done')
  expect(await due()).toEqual([{ id: '1' }, { id: '4' }])
})

test('if a row does not show that its record needs attention, the state is written back again', async () => {
  const given = await setup()
  await given.pool.query(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, 6)`)
  expect(await given.capture()).toEqual(['1', '2', '3', '4', '5', '6'])
  await given.ledger.query(
    `update outboxd.submission s set state = r.state, due_at = null, ended_at = now(), report_due = false
     from (values ('1', 'failed'), ('2', 'failed'), ('3', 'rejected'), ('4', 'uncertain'), ('5', 'uncertain')) r (id, state)
     where outbox_id = r.id`,
  )
  await given.pool.query(
    `update outbox o set status = r.status from (values (1, 'accepted'), (2, 'failed'), (3, 'queued'), (4, 'uncertain'), (5, 'failed')) r (id, status)
     where o.id = r.id`,
  )
  await given.ledger.query(`update outboxd.submission set report_due = false where outbox_id = '6'`)
  expect(await compare(given)).toBe('done')
  const { rows } = await given.ledger.query(
    'select outbox_id as id from outboxd.submission where report_due order by 1',
  )
  expect(rows).toEqual([{ id: '1' }, { id: '3' }, { id: '5' }])
})

test('a row that shows the state as far as its table can is not written back again', async () => {
  const given = await setup({
    ddl: `create table source (id bigint generated always as identity primary key, payload jsonb default '{}', state numeric(4, 1) default 0)`,
    yaml: `table: source\nid: id\ntype: { constant: data }\npayload: payload\nstate: { status: state, new: 0, queued: 1, failed: 5, completed: 8, discarded: 9 }\n`,
  })
  await given.pool.query('insert into source select from generate_series(1, 3)')
  expect(await given.capture()).toEqual(['1', '2', '3'])
  // Uncertain has no value, and rejected that of queued. A row with 5.0 says failed.
  await given.ledger.query(
    `update outboxd.submission s set state = r.state, due_at = null, ended_at = now(), report_due = false
     from (values ('1', 'failed'), ('2', 'rejected'), ('3', 'uncertain')) r (id, state) where outbox_id = r.id`,
  )
  await given.pool.query('update source set state = 5 where id = 1')
  expect(await compare(given)).toBe('done')
  expect((await given.ledger.query('select from outboxd.submission where report_due')).rowCount).toBe(0)
})

test('if a table cannot show an end, outcomes are not written back again forever', async () => {
  const given = await setup({
    ddl: `create table source (id bigint generated always as identity primary key, payload jsonb default '{}', state text default 'new',
      at timestamptz default now())`,
    yaml: `table: source\nid: id\ntype: { constant: data }\npayload: payload\ncreated_at: at\nstate: { status: state, new: new, queued: taken }\n`,
  })
  await given.pool.query('insert into source default values')
  expect(await given.capture()).toEqual(['1'])
  await given.ledger.query(
    `update outboxd.submission set state = 'completed', due_at = null, ended_at = now(), transaction_id = '1', report_due = false`,
  )
  expect(await compare(given)).toBe('done')
  const { rows } = await given.ledger.query('select from outboxd.submission where report_due')
  expect(rows).toEqual([])
})
