import { expect, test } from 'vitest'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { setup } from './setup.ts'

/** What holds in each kind of table whose rows outboxd marks, on capture or at the end. */

const columns = `(id bigint not null, key text, payload jsonb default '{}', made timestamptz default '2026-11-01',
  status text default 'new', taken boolean default false, done_at timestamptz, said text)`
const plain = `create table source ${columns}; create unique index on source (id)`
const viewOf = (base: string) =>
  `create table base ${columns}; create unique index on base (id); create view source as select * from ${base}`
const status = '{ status: status, new: new, queued: taken, completed: done }'
const flag = '{ flag: taken, set: [queued] }'

const kinds: Record<string, { ddl: string; state: string }> = {
  'a status column': { ddl: plain, state: status },
  'a flag that is set on capture': { ddl: plain, state: flag },
  'a time that is set on capture': { ddl: plain, state: '{ timestamp: done_at, set: [queued] }' },
  'a status that is set at the end': { ddl: plain, state: '{ status: status, new: new, completed: done }' },
  'a time that is set at the end': { ddl: plain, state: '{ timestamp: done_at, set: [completed] }' },
  'an id with a collation of its own': {
    ddl: plain.replace('id bigint', 'id text collate "de-x-icu"'),
    state: '{ timestamp: done_at, set: [completed] }',
  },
  partitions: {
    ddl: `create table source ${columns} partition by range (id); create table first partition of source for values from (1) to (3);
      create table second partition of source for values from (3) to (9)`,
    state: status,
  },
  'partitions, marked at the end': {
    ddl: `create table source ${columns} partition by hash (id); create table only_one partition of source for values with (modulus 1, remainder 0)`,
    state: '{ timestamp: done_at, set: [completed] }',
  },
  'an inheriting table': { ddl: `create table source ${columns}; create table heir () inherits (source)`, state: flag },
  'a view that Postgres can write': { ddl: viewOf('base'), state: flag },
  'a view with an INSTEAD OF trigger': {
    ddl: `${viewOf(`(select b.* from base b cross join (values (1)) one)`)};
      create function write() returns trigger language plpgsql as $$ begin
        if tg_op = 'INSERT' then insert into base (id, key) values (new.id, new.key);
        else
          update base set status = new.status, taken = new.taken, done_at = new.done_at, said = new.said where id = old.id;
        end if;
        return new;
      end $$;
      create trigger write instead of insert or update on source for each row execute function write()`,
    state: status,
  },
}

test.each(
  Object.entries(kinds),
)('%s: rows wait behind a locked row of their key, and get their outcomes again if they are set back', async (_, {
  ddl,
  state,
}) => {
  const { pool, capture, report, outbox, connect } = await setup({
    ddl,
    yaml: `table: source\nid: id\nid_unique: promised\ntype: { constant: data }\nkey: key\npayload: payload\ncreated_at: made
state: ${state}\nwrite: { said: state }`,
  })
  await pool.query(`insert into source (id, key) values (1, 'a'), (2, 'b'), (3, 'a')`)
  const erp = await connect()
  await erp.query(`begin; select from source where id = '1' for update`)
  expect(await capture()).toEqual(['2'])
  await erp.query('rollback')
  expect(await capture()).toEqual(['1', '3'])
  const records = async () => (await pool.query('select state, report_due as due from outboxd.submission')).rows

  await pool.query(
    `update outboxd.submission set state = 'completed', due_at = null, held = false, ended_at = now(), report_due = false`,
  )
  const { rows } = await pool.query('select outbox_id as "outboxId", row_created as created from outboxd.submission')
  const outcomes = rows.map((row) => ({
    ...row,
    state: 'completed' as const,
    transactionId: 't',
    errorCode: null,
    error: null,
  }))
  expect(await report(...outcomes)).toEqual(['written', 'written', 'written'])
  expect(await mayHaveWaitingRows(outbox)).toBe(false)
  await pool.query(`update source set status = 'new', taken = false, done_at = null, said = null`)
  expect(await mayHaveWaitingRows(outbox)).toBe(true)
  await capture()
  expect(await records()).toEqual(Array(3).fill({ state: 'completed', due: true }))
  expect(await report(...outcomes)).toEqual(['written', 'written', 'written'])
  expect((await pool.query('select said from source')).rows).toEqual(Array(3).fill({ said: 'completed' }))
  expect(await mayHaveWaitingRows(outbox)).toBe(false)
})
