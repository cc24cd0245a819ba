import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { Outbox } from '../../src/outbox/outbox.ts'
import { OutboxTableUnusable } from '../../src/outbox/readTableShape.ts'
import { ignoredStartMessage } from '../../src/outbox/startPosition.ts'
import { type Setup, setup, tableOf } from './setup.ts'
import { ddl, tableForms } from './tableForms.ts'

const insert = (pool: pg.Pool, rows = 1) =>
  pool.query(`insert into source (payload) select '{}' from generate_series(1, ${rows})`)
const begun = async (pool: pg.Pool) =>
  (await pool.query('select table_name as table, start_given as given, start_id as id from outboxd.ledger')).rows[0]
const notBegun = { table: null, given: null, id: null }

/** The ledger is gone, and a new one is there in its place. */
async function loseLedger({ pool }: Pick<Setup, 'pool'>): Promise<void> {
  await pool.query('truncate outboxd.submission, outboxd.outbox_cursor cascade')
  await pool.query('update outboxd.ledger set table_name = null, id_column = null')
}

describe.each(Object.entries(tableForms))('a new ledger beside a table of the form %s', (_form, { yaml }) => {
  const installed = () => setup({ ddl, yaml })

  test('asks where to begin if there is any row, even if a former ledger has sent it, and notes nothing', async () => {
    const given = await installed()
    const { outbox, pool, capture, report } = given
    await insert(pool, 2)
    expect(await capture()).toEqual(['1', '2'])
    await report({ outboxId: '1', state: 'completed', transactionId: 'tx-1', errorCode: null, error: null })
    await loseLedger(given)
    const binding = outbox.bindLedger('daemon')
    await expect(binding).rejects.toThrow(OutboxTableUnusable)
    await expect(binding).rejects.toThrow(
      /has 2 rows.* of outbox.yaml:\n {2}start: now .*\n {2}start: beginning .*\n {2}start: id:N .*\n.*outboxd recover/,
    )
    expect(await begun(pool)).toEqual(notBegun)
  })

  test('is not asked by an empty table, nor later', async () => {
    const { outbox, pool } = await installed()
    await outbox.bindLedger('daemon')
    await insert(pool)
    await outbox.bindLedger('daemon')
    expect(await begun(pool)).toEqual({ table: 'public.source', given: null, id: null })
  })

  test('start: now leaves the rows that exist alone', async () => {
    const { pool, describedAs } = await installed()
    await insert(pool, 2)
    const { outbox, capture } = describedAs(`${yaml}\nstart: now`)
    await outbox.bindLedger('daemon')
    await insert(pool)
    expect(await capture()).toEqual(['3'])
  })

  test('start: beginning sends all rows that wait', async () => {
    const { pool, describedAs } = await installed()
    await insert(pool, 2)
    const { outbox, capture } = describedAs(`${yaml}\nstart: beginning`)
    await outbox.bindLedger('daemon')
    expect(await capture()).toEqual(['1', '2'])
  })

  test('start: id:N sends rows from that id on, and a later start has no effect', async () => {
    const { pool, describedAs } = await installed()
    await insert(pool, 3)
    const { outbox, capture } = describedAs(`${yaml}\nstart: id:2`)
    await outbox.bindLedger('daemon')
    const later = describedAs(`${yaml}\nstart: beginning`)
    await later.outbox.bindLedger('daemon')
    expect(await begun(pool)).toEqual({ table: 'public.source', given: 'id:2', id: '2' })
    expect(await later.capture()).toEqual(['2', '3'])
    expect(await capture()).toEqual([])
  })

  test('a first start that is broken off before its COMMIT has noted nothing', async () => {
    const { pool, describedAs } = await installed()
    await insert(pool)
    const { outbox } = describedAs(`${yaml}\nstart: now`)
    const killed = {
      query: (...asked: [string]) =>
        asked[0].startsWith('update') ? Promise.reject(new Error('killed')) : pool.query(...asked),
    } as unknown as pg.Pool
    await expect(new Outbox(pool, outbox.described, 1_000, killed).bindLedger('daemon')).rejects.toThrow('killed')
    expect(await begun(pool)).toEqual(notBegun)
    await outbox.bindLedger('daemon')
    expect(await begun(pool)).toMatchObject({ table: 'public.source', given: 'now', id: '2' })
  })
})

describe('our own table', () => {
  const fill = (pool: pg.Pool) => pool.query(`insert into outbox (type, payload) values ('data', '{}'), ('data', '{}')`)

  test('begins with all rows if none is marked', async () => {
    const { outbox, pool, capture } = await setup()
    await fill(pool)
    await outbox.bindLedger('daemon')
    expect(await capture()).toEqual(['1', '2'])
  })

  test.each([
    "status = 'accepted'",
    "status = 'completed'",
    "transaction_id = 'tx-1'",
  ])('asks if a row is marked (%s), and says how to make outbox.yaml', async (mark) => {
    const { outbox, pool } = await setup()
    await fill(pool)
    await pool.query(`update outbox set ${mark} where id = 2`)
    await expect(outbox.bindLedger('daemon')).rejects.toThrow(/has 2 rows.*`outboxd describe outbox --write`/)
    expect(await begun(pool)).toEqual(notBegun)
  })
})

test('a ledger with records is not asked: `outboxd recover` made them', async () => {
  const { outbox, pool } = await setup({ ddl, yaml: tableForms.marked.yaml })
  await insert(pool)
  await pool.query(`insert into outboxd.submission (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at)
    values (gen_random_uuid(), '1', 'data', now(), 'rejected', gen_random_uuid(), now())`)
  await outbox.bindLedger('daemon')
  expect(await begun(pool)).toMatchObject({ table: 'public.source' })
})

test('of two daemons with different tables that start at once, the second is refused', async () => {
  const { outbox, pool } = await setup({ ddl, yaml: tableForms.marked.yaml })
  const bindsSecond = {
    async query(...asked: [string]) {
      if (asked[0].startsWith('update')) await outbox.bindLedger('first')
      return pool.query(...asked)
    },
  } as unknown as pg.Pool
  await expect(new Outbox(pool, 'outbox', 1_000, bindsSecond).bindLedger('second')).rejects.toThrow(
    'the ledger belongs to the outbox public.source',
  )
  expect(await begun(pool)).toMatchObject({ table: 'public.source' })
})

test('many rows are not counted to the end', async () => {
  const { outbox, pool } = await setup({ ddl, yaml: tableForms.marked.yaml })
  await insert(pool, 10_002)
  await expect(outbox.bindLedger('daemon')).rejects.toThrow('has more than 10000 rows')
})

test.each([
  ['id:x', 'is not a value of the column id'],
  ['id:99999', 'is in the future, because the highest id is 1'],
])('start: %s is refused: it %s', async (start, why) => {
  const { pool, describedAs } = await setup({ ddl, yaml: tableForms.marked.yaml })
  await insert(pool)
  const { outbox } = describedAs(`${tableForms.marked.yaml}\nstart: ${start}`)
  await expect(outbox.bindLedger('daemon')).rejects.toThrow(why)
  expect(await begun(pool)).toEqual(notBegun)
})

test('start: now without a sequence begins with the time of creation, else it is refused', async () => {
  const yaml = 'table: docs\nid: id\ntype: { constant: data }\npayload: doc\nstate: { flag: taken, set: [queued] }'
  const { pool, describedAs } = await setup({
    ddl: 'create table docs (id text primary key, doc jsonb, taken boolean default false, made timestamptz default clock_timestamp())',
  })
  await pool.query(`insert into docs (id, doc) values ('old', '{}')`)
  await expect(describedAs(`${yaml}\nstart: now`).outbox.bindLedger('daemon')).rejects.toThrow('start: id:N')
  expect(await begun(pool)).toEqual(notBegun)
  const { outbox, capture } = describedAs(`${yaml}\ncreated_at: made\nstart: now`)
  await outbox.bindLedger('daemon')
  await pool.query(`insert into docs (id, doc) values ('new', '{}')`)
  expect(await capture()).toEqual(['new'])
})

test('a start that is still there after the first start has no effect, which is said', () => {
  const { yaml } = tableForms.marked
  const served = {
    ...{ identity: { table: 'public.source', idColumn: 'id' }, start: { id: null, at: null } },
    ...{ startGiven: 'beginning', sinceMs: 0, recoveredMs: null },
  }
  expect(ignoredStartMessage(tableOf(yaml), served)).toBeNull()
  const later = tableOf(`${yaml}\nstart: now`)
  expect(ignoredStartMessage(later, { ...served, identity: null })).toBeNull()
  expect(ignoredStartMessage(later, served)).toMatch(
    /^`start: now` in outbox.yaml has no effect, because the ledger began with `start: beginning`\. Delete the line/,
  )
  expect(ignoredStartMessage(later, { ...served, startGiven: null })).toContain('began without `start`')
})
