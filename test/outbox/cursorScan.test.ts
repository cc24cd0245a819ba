import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mayHaveWaitingRows, readWaitingRows } from '../../src/outbox/readRows.ts'
import { readPositionForStartNow } from '../../src/outbox/startPosition.ts'
import { common, cursorForms, ddl, insertKnownRows, markKnown } from './cursorForms.ts'
import { anyRows, openClaim, type Setup, setup, tableOf } from './setup.ts'

for (const [name, form] of Object.entries(cursorForms)) {
  test(`${name}: every row is captured once, and nothing is written to the table`, async () => {
    const { pool, capture, outbox } = await setup(form)
    await pool.query(`insert into source (key) select 'k' from generate_series(1, 7)`)
    const before = await pool.query('select *, xmin from source order by id')
    expect(await capture(3)).toEqual(['1', '2', '3'])
    expect(await capture(3)).toEqual(['4', '5', '6'])
    expect(await capture(3)).toEqual(['7'])
    await restsAfter(capture, outbox)
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
    await restsAfter(capture, outbox)
  })

  test(`${name}: a row whose key or type the ERP changes during its claim waits for the next claim`, async () => {
    const { pool, capture, outbox } = await setup(form)
    await pool.query(`insert into source (key) values ('a'), ('b'), ('c'), (null), ('closed')`)
    await using claimed = await openClaim(outbox, anyRows)
    await pool.query(`update source set key = 'closed' where id = 1`)
    await pool.query(`update source set type = 'order' where id = 2`)
    await pool.query(`update source set payload = '{"edited": true}' where id = 3`)
    expect((await claimed.readAsManyAsFit()).map(({ outboxId }) => outboxId)).toEqual(['3', '4'])
    expect(await capture()).toEqual(['1', '2', '3', '4', '5'])
  })

  test(`${name}: rows of a key that has to wait are passed over, and captured once it may go on`, async () => {
    const { pool, capture } = await setup(form)
    await pool.query(`insert into source (key) values ('a'), ('b'), ('a'), (null)`)
    expect(await capture(10, ['a'])).toEqual(['2', '4'])
    expect(await capture(10, ['a'])).toEqual([])
    expect(await capture(10)).toEqual(['1', '3'])
  })

  test(`${name}: a row that commits while a scan reads is not overtaken`, async () => {
    const { pool, capture, connect } = await setup(form)
    const late = await connect()
    await late.query(`begin; insert into source (key) values ('k')`)
    await insertKnownRows(pool, 2, 2_101)
    const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>
    let pages = 0
    const reading = vi.spyOn(pool, 'query').mockImplementation((async (...given: unknown[]) => {
      const answer = await query(...given)
      if (String(given[0]).includes('as settled') && pages++ === 0) {
        await late.query('commit')
        await query(`insert into source (key) values ('k'), ('l')`)
      }
      return answer
    }) as never)
    expect(await capture()).toEqual(['2103'])
    reading.mockRestore()
    expect(await capture()).toEqual(['1', '2102'])
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

test('a position in a sequence: the cursor moves past the captured rows', async () => {
  const { pool, capture } = await setup(cursorForms['a position in a sequence'])
  await pool.query(`insert into source (key) select null from generate_series(1, 5)`)
  await capture()
  await capture()
  const { rows } = await pool.query('select position from outboxd.outbox_cursor')
  expect(rows).toEqual([{ position: ['5'] }])
})

test('a position in a sequence: a transaction that inserted only into other tables does not hold the cursor back', async () => {
  const { pool, capture, connect } = await setup(cursorForms['a position in a sequence'])
  const other = await connect()
  await other.query(`begin; insert into outbox (type, payload) values ('data', '{}')`)
  await pool.query('insert into source default values')
  await capture()
  await capture()
  expect((await pool.query('select position from outboxd.outbox_cursor')).rows).toEqual([{ position: ['1'] }])
})

test('a position in a sequence: an insert that has drawn its number but not written its row holds the cursor back', async () => {
  const { pool, capture, connect } = await setup({
    ddl: `${ddl};
      create function slow() returns text volatile language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(1); return 'data'; end $$`,
    yaml: `${common}\nsequence: id`,
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

test('a position in a sequence: a writer of an inheriting table holds the cursor back', async () => {
  const { pool, capture, connect } = await setup({
    ddl: `${ddl}; create table child () inherits (source)`,
    yaml: `${common}\nsequence: id\nid_unique: promised`,
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

test('the start position "now" is read only when no session writes an inheriting table', async () => {
  const { pool, outbox, connect } = await setup({
    ddl: `${ddl}; create table child () inherits (source)`,
    yaml: `${common}\nsequence: id\nid_unique: promised`,
  })
  const late = await connect()
  await late.query(`begin; insert into child (id) values (nextval(pg_get_serial_sequence('source', 'id')))`)
  await pool.query('insert into source default values')
  const position = readPositionForStartNow(outbox)
  const first = await Promise.race([position, late.query('select pg_sleep(0.5)').then(() => 'the writer')])
  expect(first).toBe('the writer')
  await late.query('commit')
  expect(await position).toEqual({ id: '3', at: null })
})

for (const end of ['rollback', 'select'])
  test(`the order of transactions: a row is not missed if a DELETE of it ${end === 'rollback' ? 'was undone' : 'is open'}`, async () => {
    const { pool, capture, connect } = await setup(cursorForms['the order of transactions'])
    const erp = await connect()
    const insert = `insert into source (key) values ('k')`
    await erp.query('begin')
    for (let row = 1; row <= 5; row++) await erp.query(insert)
    await erp.query('commit')
    expect(await capture(2)).toEqual(['1', '2'])
    const isSettled =
      'select from source where xmin::text::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint'
    await expect.poll(async () => (await pool.query(isSettled)).rowCount).toBe(5)
    expect(await capture(1, ['k'])).toEqual([])
    // The DELETE overwrites the number that the INSERT had within its transaction (cmin).
    await erp.query('begin')
    await erp.query('delete from source where id = 3')
    await erp.query(end)
    expect(await capture()).toEqual(['3', '4', '5'])
  })

test('the order of transactions: the cursor passes the full pages of a large transaction', async () => {
  const { pool, capture } = await setup(cursorForms['the order of transactions'])
  await pool.query('insert into source select from generate_series(1, 4500)')
  await markKnown(pool, 1, 4_499)
  const isSettled =
    'select from source where xmin::text::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint'
  await expect.poll(async () => (await pool.query(isSettled)).rowCount).toBe(4_500)
  expect(await capture()).toEqual(['4500'])
  const { rows } = await pool.query('select position[3] as id from outboxd.outbox_cursor')
  expect(rows).toEqual([{ id: '4000' }])
  expect(await capture()).toEqual([])
  expect((await pool.query('select position[3] as id from outboxd.outbox_cursor')).rows).toEqual([{ id: '4500' }])
})

const keyOrders = {
  'the ids of its own sequence': { ddl, yaml: common },
  'the column of `order`': {
    ddl: "create table source (id uuid primary key default gen_random_uuid(), n int generated always as identity, type text default 'data', key text, payload jsonb default '{}')",
    yaml: `${common}\norder: n`,
  },
}

for (const [name, form] of Object.entries(keyOrders)) {
  /** Captures all rows in batches of `limit`. @returns the numbers of the key's rows, in the order of the ledger */
  const captureAll = async ({ pool, captureRecords }: Setup, limit: number, key: string) => {
    const taken: string[] = []
    for (let batch = await captureRecords(limit); batch.length > 0; batch = await captureRecords(limit))
      taken.push(...batch.filter((record) => record.key === key).map(({ outboxId }) => outboxId))
    const number = form.yaml.includes('order: n') ? 'n' : 'id'
    const { rows } = await pool.query(`select id::text, ${number}::int as n from source`)
    return taken.map((id) => rows.find((row) => row.id === id).n)
  }

  test(`the order of transactions: rows of a key follow ${name}, though the first was written in a savepoint`, async () => {
    const session = await setup(form)
    await session.pool.query(`
      create function write_row(k text) returns void language plpgsql as $$
        begin insert into source (key) values (k); exception when unique_violation then null; end $$;
      begin; select write_row('k'); insert into source (key) values ('k'), ('l'); select write_row('k'); commit`)
    expect(await captureAll(session, 100, 'k')).toEqual([1, 2, 4])
  })

  for (const limit of [100, 2])
    test(`the order of transactions: rows of a key follow ${name}, though a later row’s transaction began first; ${limit} a batch`, async () => {
      const session = await setup(form)
      const early = await session.connect()
      await early.query(`begin; insert into source (key) values ('other')`)
      await session.pool.query(`insert into source (key) values ('k')`)
      await early.query(`insert into source (key) values ('k'), ('other'), ('k'); commit`)
      await session.pool.query(`insert into source (key) values ('k')`)
      expect(await captureAll(session, limit, 'k')).toEqual([2, 3, 5, 6])
    })
}

test('the order of transactions: without `order`, ids that do not come from a sequence do not order a key', async () => {
  const { pool, capture } = await setup({
    ddl: `create table source (id bigint primary key, type text default 'data', key text, payload jsonb default '{}')`,
    yaml: common,
  })
  for (const id of [51, 1, 52]) await pool.query(`insert into source (id, key) values (${id}, 'k')`)
  expect(await capture()).toEqual(['51', '1', '52'])
})

test('ids that are not drawn in order are refused with `sequence`, and safe without it', async () => {
  const cached = `${ddl}; alter table source alter id set cache 50`
  const { outbox } = await setup({ ddl: cached, yaml: `${common}\nsequence: id` })
  await expect(mayHaveWaitingRows(outbox)).rejects.toThrow(
    'draws "id" from a sequence that counts down or caches numbers',
  )
  const { outbox: other } = await setup({
    ddl: 'create table source (id bigint primary key, type text, key text, payload jsonb)',
    yaml: `${common}\nsequence: id`,
  })
  await expect(mayHaveWaitingRows(other)).rejects.toThrow('draws "id" from no sequence of its own')
  const { outbox: falling } = await setup({
    ddl: `${ddl}; alter table source alter id set increment -1 set minvalue -1000 set start -1`,
    yaml: `${common}\nsequence: id`,
  })
  await expect(mayHaveWaitingRows(falling)).rejects.toThrow('draws "id" from a sequence that counts down')

  const { capture, connect } = await setup({ ddl: cached, yaml: common })
  const [one, two] = [await connect(), await connect()]
  await one.query('insert into source default values')
  await two.query('insert into source default values')
  expect(await capture()).toEqual(['1', '51'])
  expect(await capture()).toEqual([])
  await one.query('insert into source default values')
  expect(await capture()).toEqual(['2'])
})

test('the order of transactions: a cursor ahead of every transaction is ignored, because it is from a different database', async () => {
  const { pool, capture, outbox } = await setup(cursorForms['the order of transactions'])
  await pool.query('insert into source default values')
  await capture()
  await capture()
  await pool.query(`update outboxd.outbox_cursor set position[1] = '999999999'`)
  await pool.query('insert into source default values')
  expect((await readWaitingRows(outbox, 5)).map(({ outboxId }) => outboxId)).toEqual(['2'])
  expect(await capture()).toEqual(['2'])
})

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
test.each(changedTypes)('if a change of $from to $to changes the text of ids, capture is refused', async ({
  from,
  to,
  id,
  change,
}) => {
  const { pool, capture, describedAs } = await setup({
    ddl: `create table source (id ${from} primary key, type text default 'data', key text, payload jsonb default '{}')`,
    yaml: common,
  })
  await pool.query(`insert into source (id) values ('${id}')`)
  expect(await capture()).toEqual([id])
  await pool.query(`alter table source alter id type ${to} using id::${to}`)
  const restarted = describedAs(common)
  await expect(restarted.capture()).rejects.toMatchObject({
    problem: { kind: 'foreign_outbox', detail: expect.stringContaining(`(${change})`) },
  })
  await expect(readWaitingRows(restarted.outbox, 5)).rejects.toThrow('Give the column its former type')
})

test.each([
  ['int', 'bigint', '7'],
  ['bigint', 'numeric', '7'],
  ['bigint', 'text', '7'],
  ['varchar(36)', 'uuid', 'aaaaaaaa-0000-4000-8000-000000000001'],
  ['char(8)', 'text', 'A7'],
  ['numeric', 'numeric(8, 2)', '7.00'],
])('if a change of %s to %s keeps the text of ids, captured rows are known, and capture goes on', async (from, to, id) => {
  const { pool, capture, describedAs } = await setup({
    ddl: `create table source (id ${from} primary key, type text default 'data', key text, payload jsonb default '{}')`,
    yaml: common,
  })
  await pool.query(`insert into source (id) values ('${id}')`)
  expect(await capture()).toEqual([id])
  await pool.query(`alter table source alter id type ${to} using id::${to}`)
  expect(await describedAs(common).capture()).toEqual([])
  expect((await pool.query('select from outboxd.problem')).rowCount).toBe(0)
})

test('a table created again under the same name is read from its beginning', async () => {
  const { pool, capture } = await setup(cursorForms['a position in a sequence'])
  await pool.query(`insert into source (key) select null from generate_series(1, 5)`)
  await capture()
  await capture()
  await pool.query(
    `drop table source; ${ddl}; alter sequence source_id_seq restart 3; insert into source (key) select null from generate_series(1, 5)`,
  )
  expect(await capture()).toEqual(['6', '7'])
})

/** Waits until no row is left. Transactions of other databases on the server also hold back the cursor for a while. */
async function restsAfter(capture: () => Promise<string[]>, outbox: Outbox): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await capture()).toEqual([])
      expect(await mayHaveWaitingRows(outbox)).toBe(false)
    },
    { timeout: 50_000, interval: 20 },
  )
}
