import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mayHaveWaitingRows, readWaitingRows } from '../../src/outbox/readRows.ts'
import { findRowsWithoutRecord } from '../../src/outbox/rowsUnderWay.ts'
import { createDatabase } from '../support/database.ts'
import { rests, setup, tableOf } from './setup.ts'
import { appendOnly, common, ddl, endOnly, insertKnownRows, unmarkedForms } from './tableForms.ts'

/** Tables whose rows do not show that they were captured. */

for (const [name, form] of Object.entries(unmarkedForms)) {
  test(`${name}: every row is captured once, and nothing is written to the table`, async () => {
    const { pool, capture, outbox } = await setup(form)
    await pool.query(`insert into source (key) select 'k' from generate_series(1, 7)`)
    const before = await pool.query('select *, xmin from source order by id')
    expect(await capture(3)).toEqual(['1', '2', '3'])
    expect(await capture(3)).toEqual(['4', '5', '6'])
    expect(await capture(3)).toEqual(['7'])
    await rests({ capture, outbox })
    expect(await readBacklog(outbox)).toEqual({ waiting: 0, oldestMs: null })
    expect((await pool.query('select *, xmin from source order by id')).rows).toEqual(before.rows)
  })

  test(`${name}: a row that commits late is not missed, by this instance or another`, async () => {
    const { pool, capture, connect, outbox } = await setup(form)
    const late = await connect()
    await late.query('begin')
    await late.query('insert into source default values')
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['2'])
    expect(await capture()).toEqual([])
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['3'])
    await late.query('commit')
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    const another = new Outbox(pool, tableOf(form.yaml), 1_000, pool)
    expect((await readWaitingRows(another, 10)).map(({ outboxId }) => outboxId)).toEqual(['1'])
    expect(await capture()).toEqual(['1'])
    await rests({ capture, outbox })
  })

  test(`${name}: rows of a key that has to wait are passed over, and captured once it may go on`, async () => {
    const { pool, capture } = await setup(form)
    await pool.query(`insert into source (key) values ('a'), ('b'), ('a'), (null)`)
    expect(await capture(10, ['a'])).toEqual(['2', '4'])
    expect(await capture(10, ['a'])).toEqual([])
    expect(await capture(10)).toEqual(['1', '3'])
  })

  test(`${name}: many rows that have records do not hide new rows`, async () => {
    const { pool, capture } = await setup(form)
    await pool.query(`insert into source (key) values ('stuck')`)
    await insertKnownRows(pool, 2, 45_001)
    await pool.query('insert into source default values')
    expect(await capture(100, ['stuck'])).toEqual(['45002'])
    expect(await capture(100, ['stuck'])).toEqual([])
    expect(await capture()).toEqual(['1'])
  })

  test(`${name}: transactions that commit in any order lose no row`, async () => {
    const { pool, capture, connect } = await setup(form)
    const sessions = await Promise.all(Array.from({ length: 4 }, connect))
    const step = fc.record({
      session: fc.nat(3),
      what: fc.constantFrom('insert', 'insert', 'savepoint', 'end', 'undo'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const open = new Set<number>()
        for (const { session, what } of steps) {
          const client = sessions[session]
          if (!open.has(session)) await client?.query('begin')
          open.add(session)
          if (what === 'savepoint') await client?.query('savepoint s; insert into source default values; release s')
          else if (what === 'insert') await client?.query('insert into source default values')
          else {
            await client?.query(what === 'end' ? 'commit' : 'rollback')
            open.delete(session)
            await capture(3)
          }
        }
        for (const session of open) await sessions[session]?.query('commit')
        while ((await capture(3)).length > 0);
        const { rows } = await pool.query(`select id::text from source
          where id::text not in (select outbox_id from outboxd.submission)`)
        expect(rows).toEqual([])
      }),
      { numRuns: process.env.LONG ? 100 : 8 },
    )
  })
}

const position = async ({ pool }: { pool: Outbox['pool'] }) =>
  (await pool.query('select position::int from outboxd.outbox_cursor')).rows.map((row) => row.position)

describe('the position', () => {
  test('moves past the captured rows', async () => {
    const { pool, capture } = await setup(appendOnly)
    await pool.query(`insert into source (key) select null from generate_series(1, 5)`)
    await capture()
    await capture()
    expect(await position({ pool })).toEqual([5])
  })

  test('a transaction that inserted only into other tables does not hold it back', async () => {
    const { pool, capture, connect } = await setup(appendOnly)
    const other = await connect()
    await other.query(`begin; insert into outbox (type, payload) values ('data', '{}')`)
    await pool.query('insert into source default values')
    await capture()
    await capture()
    expect(await position({ pool })).toEqual([1])
  })

  test('a transaction in another database does not hold it back, although its table has the same oid', async () => {
    const { pool, capture } = await setup({
      yaml: 'table: outbox\nid: id\ntype: type\npayload: payload\nstate: none\nsequence: id',
    })
    const other = await createDatabase()
    onTestFinished(() => other[Symbol.asyncDispose]())
    const oid = `select 'outbox'::regclass::oid as oid`
    expect((await other.pool.query(oid)).rows).toEqual((await pool.query(oid)).rows)
    const open = await other.pool.connect()
    onTestFinished(() => open.release(true))
    const insert = `insert into outbox (type, payload) values ('data', '{}')`
    await open.query(`begin; ${insert}`)
    await pool.query(insert)
    await capture()
    await capture()
    expect(await position({ pool })).toEqual([1])
  })

  test('an insert that has drawn its number but not written its row holds it back', async () => {
    const { pool, capture, connect } = await setup({
      ddl: `${ddl};
        create function slow() returns text volatile language plpgsql as $$
        begin perform pg_advisory_xact_lock_shared(1); return 'data'; end $$`,
      yaml: appendOnly.yaml,
    })
    const gate = await connect()
    await gate.query('select pg_advisory_lock(1)')
    const slow = await connect()
    // The insert draws its id first, then waits at the gate for its type. Its transaction has no number of its own yet.
    const inserting = slow.query('insert into source (type) values (slow())')
    const isWaiting = `select from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`
    while ((await pool.query(isWaiting)).rowCount === 0);
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['2'])
    expect(await capture()).toEqual([])
    await gate.query('select pg_advisory_unlock(1)')
    await inserting
    expect(await capture()).toEqual(['1'])
  })

  test('a writer of an inheriting table holds it back', async () => {
    const { pool, capture, connect } = await setup({
      ddl: `${ddl}; create table child () inherits (source)`,
      yaml: `${appendOnly.yaml}\nid_unique: promised`,
    })
    const late = await connect()
    await late.query(`begin; insert into child (id) values (nextval(pg_get_serial_sequence('source', 'id')))`)
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['2'])
    expect(await capture()).toEqual([])
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['3'])
    await late.query('commit')
    expect(await capture()).toEqual(['1'])
  })

  test('stays before a row that is not captured, and captures the rows after it once', async () => {
    const given = await setup(appendOnly)
    const { pool, capture } = given
    await pool.query(`insert into source (key) values (null), ('closed'), (null)`)
    expect(await capture(10, ['closed'])).toEqual(['1', '3'])
    expect(await capture(10, ['closed'])).toEqual([])
    expect(await position(given)).toEqual([1])
    expect(await capture()).toEqual(['2'])
    await capture()
    expect(await position(given)).toEqual([3])
  })

  test('never goes back, whatever outbox.yaml or the ledger say later', async () => {
    const given = await setup({ ddl, yaml: `${appendOnly.yaml}\nfilter: type = 'data'` })
    await given.pool.query(`insert into source (type) values ('other'), ('data')`)
    expect(await given.capture()).toEqual(['2'])
    await given.capture()
    await given.pool.query(
      'begin; set local session_replication_role = replica; delete from outboxd.submission_event; delete from outboxd.submission; commit',
    )
    const anew = given.describedAs(appendOnly.yaml)
    expect(await anew.capture()).toEqual([])
    expect(await readBacklog(anew.outbox)).toMatchObject({ waiting: 0 })
    await given.pool.query(`insert into source (type) values ('other')`)
    expect(await anew.capture()).toEqual(['3'])
  })
})

describe('a table without a state', () => {
  const refusal = async (given: { ddl: string; yaml: string }) =>
    mayHaveWaitingRows((await setup(given)).outbox).then(
      () => null,
      (error: Error) => error.message,
    )

  test('needs a sequence: the column to name, or to add', async () => {
    const noSequence = `${common}\nstate: none`
    expect(await refusal({ ddl, yaml: noSequence })).toContain('name its column as "sequence: id"')
    expect(
      await refusal({
        ddl: 'create table source (id uuid primary key, type text, key text, payload jsonb)',
        yaml: noSequence,
      }),
    ).toContain(
      'add one (alter table "public"."source" add column seq bigint generated always as identity unique), then name it as "sequence: seq"',
    )
  })

  test('needs numbers that are drawn one by one at the insert', async () => {
    const altered = (sequence: string) =>
      refusal({ ddl: `${ddl}; alter table source alter id set ${sequence}`, yaml: appendOnly.yaml })
    const why = 'draws "id" from a sequence that caches numbers or does not count up by 1'
    expect(await altered('cache 50')).toContain(why)
    expect(await altered('increment 2')).toContain(why)
    expect(await altered('increment -1 set minvalue -1000 set start -1')).toContain(why)
    expect(
      await refusal({
        ddl: 'create table source (id bigint primary key, type text, key text, payload jsonb)',
        yaml: appendOnly.yaml,
      }),
    ).toContain('draws "id" from no sequence of its own')
  })
})

test('end only: a row whose record failed waits on, is not sent again, and its outcome is not written again', async () => {
  const { pool, capture, outbox } = await setup(endOnly)
  await pool.query('insert into source default values')
  await capture()
  await pool.query(
    `update outboxd.submission set state = 'failed', due_at = null, ended_at = now(), report_due = false`,
  )
  expect(await mayHaveWaitingRows(outbox)).toBe(false)
  expect(await capture()).toEqual([])
  expect((await pool.query('select report_due from outboxd.submission')).rows).toEqual([{ report_due: false }])
  expect(await findRowsWithoutRecord(outbox)).toEqual([])
})

const noMark = endOnly.yaml
const changedTypes = [
  {
    from: 'varchar(36)',
    to: 'uuid',
    id: 'AAAAAAAA-0000-4000-8000-000000000001',
    change: 'AAAAAAAA-0000-4000-8000-000000000001 as aaaaaaaa-0000-4000-8000-000000000001',
  },
  { from: 'text', to: 'bigint', id: '007', change: '007 as 7' },
  { from: 'numeric', to: 'int', id: '2.00', change: 'some do not fit its type' },
  { from: 'int', to: 'numeric(12, 2)', id: '7', change: '7 as 7.00' },
]
/** A table whose row is captured before its id column gets another type. */
async function capturedBeforeChange(from: string, to: string, id: string) {
  const given = await setup({
    ddl: `create table source (id ${from} primary key, type text default 'data', key text, payload jsonb default '{}', done_at timestamptz)`,
    yaml: noMark,
  })
  await given.pool.query(`insert into source (id) values ('${id}')`)
  expect(await given.capture()).toEqual([id])
  await given.pool.query(`alter table source alter id type ${to} using id::${to}`)
  return given
}

test.each(changedTypes)('if a change of $from to $to changes the text of ids, capture is refused', async ({
  from,
  to,
  id,
  change,
}) => {
  const { describedAs } = await capturedBeforeChange(from, to, id)
  const restarted = describedAs(noMark)
  await expect(restarted.capture()).rejects.toMatchObject({
    name: 'OutboxMismatch',
    message: expect.stringContaining(`(${change})`),
  })
})

test.each([
  ['int', 'bigint', '7'],
  ['bigint', 'numeric', '7'],
  ['bigint', 'text', '7'],
  ['varchar(36)', 'uuid', 'aaaaaaaa-0000-4000-8000-000000000001'],
  ['char(8)', 'text', 'A7'],
  ['numeric', 'numeric(8, 2)', '7.00'],
])('if a change of %s to %s keeps the text of ids, captured rows are known, and capture goes on', async (from, to, id) => {
  const { pool, describedAs } = await capturedBeforeChange(from, to, id)
  expect(await describedAs(noMark).capture()).toEqual([])
  expect((await pool.query('select from outboxd.problem')).rowCount).toBe(0)
})
