import { expect, test } from 'vitest'
import { openOutbox } from '../../../src/store/outbox.ts'
import { anyRows, setup } from './setup.ts'

/** An id that was used before: the row is known by more than its id. */

const columns = `type text default 'data', key text, payload jsonb default '{}', created_at timestamptz`
const forms = {
  'rows that say they are taken, and when they were recorded': {
    yaml: 'created_at: created_at\nstate: { flag: taken, set: [queued] }\nwrite: { said: state }',
  },
  'rows that say they are taken': { yaml: 'state: { flag: taken, set: [queued] }\nwrite: { said: state }' },
  'the order of transactions': { yaml: 'created_at: created_at\nstate: none\nwrite: { said: state }' },
  'the order of transactions, and content': { yaml: 'state: none\nwrite: { said: state }' },
}
const tableForm = ({ yaml }: { yaml: string }) => ({
  ddl: `create table source (id bigint primary key, ${columns}, taken boolean default false, said text)`,
  yaml: `table: source\nid: id\ntype: type\nkey: key\npayload: payload\n${yaml}`,
})
const insert = (id: number, created: string, n: number) =>
  `insert into source (id, created_at, payload) values (${id}, '${created}', '{"n": ${n}}')`
const problems = 'select kind, subject, detail from outboxd.problem'

for (const [name, form] of Object.entries(forms)) {
  test(`${name}: another row of a known id is neither sent nor told the outcome of the first, and a person hears`, async () => {
    const { pool, capture, captureRecords, outbox } = await setup(tableForm(form))
    await pool.query(insert(1, '2026-11-01', 1))
    expect(await capture()).toEqual(['1'])
    await pool.query(`truncate source; ${insert(1, '2026-11-02', 2)}; ${insert(2, '2026-11-02', 3)}`)
    expect(await capture()).toEqual(['2'])
    const [first] = (await pool.query(`select outbox_id, row_stamp from outboxd.submission where outbox_id = '1'`)).rows
    const status = { state: 'completed' as const, transactionId: 't', errorCode: null, error: null }
    const told = await outbox.report(async () => [{ outboxId: '1', stamp: first.row_stamp, ...status }])
    expect(told).toMatchObject({ kind: 'told', rows: [{ kind: 'another' }] })
    const { rows } = await pool.query('select id, said from source where id = 1')
    expect(rows).toEqual([{ id: '1', said: null }])
    expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict', subject: '1' }])
    expect(await captureRecords()).toEqual([])
    expect((await pool.query('select count(*)::int as n from outboxd.submission')).rows).toEqual([{ n: 2 }])
  })

  test(`${name}: a row that comes a second time is still the same`, async () => {
    const { pool, capture, outbox } = await setup(tableForm(form))
    await pool.query(insert(1, '2026-11-01', 1))
    expect(await capture()).toEqual(['1'])
    // The crash between the ledger's commit and the mark, or the ERP that sets the row back.
    await pool.query('update source set taken = false, said = null')
    await capture()
    if (form.yaml.includes('created_at')) await pool.query(`update source set taken = false, payload = '{"n": 9}'`)
    await capture()
    const [first] = (await pool.query('select row_stamp as stamp from outboxd.submission')).rows
    await outbox.report(async () => [
      { outboxId: '1', ...first, state: 'completed', transactionId: 't', errorCode: null, error: null },
    ])
    expect((await pool.query('select said from source')).rows).toEqual([{ said: 'completed' }])
    expect((await pool.query(problems)).rows).toEqual([])
  })
}

test('a row that is put aside does not stop the others, and is looked at again after a while', async () => {
  const { pool, capture, outbox } = await setup(
    tableForm(forms['rows that say they are taken, and when they were recorded']),
  )
  await pool.query(insert(1, '2026-11-01', 1))
  await capture()
  await pool.query(`truncate source; ${insert(1, '2026-11-02', 2)}`)
  await capture()
  const claimed = await outbox.claim({ ...anyRows, skipped: [{ outboxId: '1', isCaptured: false }] })
  expect(claimed.outboxIds).toEqual([])
  await claimed[Symbol.asyncDispose]()
  // The ERP gives the row an id of its own.
  await pool.query('update source set id = 7 where id = 1')
  expect(await capture()).toEqual(['7'])
})

test('two rows of one id in a batch, where ids were promised to be unique: neither is taken, and a person hears', async () => {
  const yaml = 'id_unique: promised\ncreated_at: created_at\nstate: { flag: taken, set: [queued] }'
  const { yaml: whole } = tableForm({ yaml })
  const { pool, capture } = await setup({
    ddl: `create table below (id bigint, ${columns}, taken boolean default false, said text); create view source as select * from below`,
    yaml: whole,
  })
  await pool.query(`${insert(1, '2026-11-01', 1)}; ${insert(1, '2026-11-01', 2)}; ${insert(2, '2026-11-01', 3)}`)
  expect(await capture()).toEqual(['2'])
  expect((await pool.query(problems)).rows).toEqual([
    { kind: 'row_conflict', subject: '1', detail: expect.stringContaining('two rows of the outbox have this id') },
  ])
})

test('by a sequence: numbers that begin anew, where nobody would look, are noticed', async () => {
  const { pool, capture, outbox } = await setup({
    ddl: `create table source (id bigint generated always as identity primary key, ${columns})`,
    yaml: 'table: source\nid: id\ntype: type\npayload: payload\nstate: none\nsequence: id',
  })
  await pool.query(`insert into source (type) select 'data' from generate_series(1, 5)`)
  await capture()
  await capture()
  await pool.query(`truncate source restart identity; insert into source default values`)
  await expect(capture()).rejects.toThrow('the ids of the outbox public.source')
  await expect(capture()).rejects.toThrow('outboxd adopt --new')
  expect(await outbox.hasNew()).toBe(false)
})

test('a ledger belongs to one table, by its database, schema and id, and refuses another', async () => {
  const { pool, capture } = await setup(tableForm(forms['rows that say they are taken']))
  await capture()
  const other = openOutbox(pool, 'outbox', 1_000, pool)
  const why =
    /the ledger belongs to the outbox public\.source .*by its column id, and the configuration names public\.outbox/
  await expect(other.claim(anyRows)).rejects.toThrow(why)
  await expect(other.backlog()).rejects.toThrow(why)
  await expect(other.report(async () => [])).rejects.toThrow(why)
})

test('a ledger of before knows its rows by when they were recorded', async () => {
  const { pool, capture } = await setup(tableForm(forms['rows that say they are taken, and when they were recorded']))
  await pool.query(`${insert(1, '2026-11-01', 1)}; ${insert(2, '2026-11-01', 1)}`)
  await capture()
  await pool.query('update outboxd.submission set row_stamp = null')
  await pool.query(`update source set taken = false; update source set created_at = '2026-11-02' where id = 2`)
  expect(await capture()).toEqual(['1'])
  expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict', subject: '2' }])
  const { rows } = await pool.query(`select row_stamp from outboxd.submission where outbox_id = '1'`)
  expect(rows).toEqual([{ row_stamp: 'at 2026-11-01T00:00:00.000000Z' }])
})
