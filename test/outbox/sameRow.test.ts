import { expect, test } from 'vitest'
import { adoptOutbox } from '../../src/ledger/operator/adoptOutbox.ts'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { clearOutdatedRowDifferences } from '../../src/outbox/rowDifferences.ts'
import { writeBackRows } from '../../src/outbox/writeBack.ts'
import { openCaptureLock } from '../support/ledger.ts'
import { testActor } from '../support/testActor.ts'
import { anyRows, openClaim, type Setup, setup, tableOf } from './setup.ts'

/** If an id is used again, the stamp tells the new row from the former one. */

const columns = `type text default 'data', key text, payload jsonb default '{}', created_at timestamptz`
const forms = {
  'rows with a mark and created_at': {
    yaml: 'created_at: created_at\nstate: { flag: taken, set: [queued] }\nwrite: { said: state }',
  },
  'rows with a mark': { yaml: 'state: { flag: taken, set: [queued] }\nwrite: { said: state }' },
  'the order of transactions': { yaml: 'created_at: created_at\nstate: none\nwrite: { said: state }' },
  'the order of transactions, without created_at': { yaml: 'state: none\nwrite: { said: state }' },
}
const tableForm = ({ yaml }: { yaml: string }) => ({
  ddl: `create table source (id bigint primary key, ${columns}, taken boolean default false, said text)`,
  yaml: `table: source\nid: id\ntype: type\nkey: key\npayload: payload\n${yaml}`,
})
const insert = (id: number, created: string, n: number) =>
  `insert into source (id, created_at, payload) values (${id}, '${created}', '{"n": ${n}}')`
const problems = 'select kind, subject, detail from outboxd.problem'

for (const [name, form] of Object.entries(forms)) {
  test(`${name}: a different row with a known id is not sent, gets no outcome of the first, and is reported`, async () => {
    const { pool, capture, captureRecords, outbox } = await setup(tableForm(form))
    await pool.query(insert(1, '2026-11-01', 1))
    expect(await capture()).toEqual(['1'])
    await pool.query(`truncate source; ${insert(1, '2026-11-02', 2)}; ${insert(2, '2026-11-02', 3)}`)
    expect(await capture()).toEqual(['2'])
    const [first] = (await pool.query(`select outbox_id, row_stamp from outboxd.submission where outbox_id = '1'`)).rows
    const status = { state: 'completed' as const, transactionId: 't', errorCode: null, error: null }
    const told = await writeBackRows(outbox, async () => [{ outboxId: '1', stamp: first.row_stamp, ...status }])
    const byContent = !form.yaml.includes('created_at')
    expect(told).toMatchObject({ kind: 'done', rows: [{ kind: byContent ? 'differs' : 'another' }] })
    const { rows } = await pool.query('select id, said from source where id = 1')
    expect(rows).toEqual([{ id: '1', said: null }])
    const subject = byContent && form.yaml.includes('none') ? '' : '1' // one problem for the table, because the ERP may edit thousands of rows
    expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict', subject }])
    expect(await captureRecords()).toEqual([])
    expect((await pool.query('select count(*)::int as n from outboxd.submission')).rows).toEqual([{ n: 2 }])
  })

  test(`${name}: a row whose mark was removed is still the same record`, async () => {
    const { pool, capture, outbox } = await setup(tableForm(form))
    await pool.query(insert(1, '2026-11-01', 1))
    expect(await capture()).toEqual(['1'])
    // As after a crash between the ledger's commit and the mark, or if the ERP removes the mark.
    await pool.query('update source set taken = false, said = null')
    await capture()
    if (form.yaml.includes('created_at')) await pool.query(`update source set taken = false, payload = '{"n": 9}'`)
    await capture()
    const [first] = (await pool.query('select row_stamp as stamp from outboxd.submission')).rows
    await writeBackRows(outbox, async () => [
      { outboxId: '1', ...first, state: 'completed', transactionId: 't', errorCode: null, error: null },
    ])
    expect((await pool.query('select said from source')).rows).toEqual([{ said: 'completed' }])
    expect((await pool.query(problems)).rows).toEqual([])
  })
}

test('a conflicting row that gets a new id is captured', async () => {
  const { pool, capture, outbox } = await setup(tableForm(forms['rows with a mark and created_at']))
  await pool.query(insert(1, '2026-11-01', 1))
  await capture()
  await pool.query(`truncate source; ${insert(1, '2026-11-02', 2)}`)
  await capture()
  const claimed = await openClaim(outbox, { ...anyRows, skipped: [{ outboxId: '1', isCaptured: false }] })
  expect(claimed.outboxIds).toEqual([])
  await claimed[Symbol.asyncDispose]()
  // The ERP gives the row a new id.
  await pool.query('update source set id = 7 where id = 1')
  expect(await capture()).toEqual(['7'])
})

test('a conflict ends if the row is deleted, gets a new id or its former created_at', async () => {
  const { pool, capture, outbox } = await setup(tableForm(forms['rows with a mark and created_at']))
  const ids = [1, 2, 3, 4]
  await pool.query(ids.map((id) => insert(id, '2026-11-01', 1)).join(';'))
  await capture()
  await pool.query(`truncate source; ${ids.map((id) => insert(id, '2026-11-02', 2)).join(';')}`)
  await capture()
  await clearOutdatedRowDifferences(outbox)
  const named = async () => (await pool.query(`${problems} order by subject`)).rows.map(({ subject }) => subject)
  expect(await named()).toEqual(['1', '2', '3', '4'])
  await pool.query(
    `delete from source where id = 1; update source set id = 9 where id = 2; update source set created_at = '2026-11-01' where id = 3`,
  )
  await clearOutdatedRowDifferences(outbox)
  expect(await named()).toEqual(['4'])
})

test('after a different outbox is adopted, rows skipped in the former one are not skipped', async () => {
  const given = await setup(tableForm(forms['rows with a mark and created_at']))
  const { pool } = given
  const captureLock = openCaptureLock(pool)
  await given.capture()
  await captureLock.skip([{ outboxId: '1', isCaptured: false, detail: 'it cannot be captured' }])
  const skipped = () => captureLock.withLock(async ({ skipped }) => skipped.map(({ outboxId }) => outboxId))
  expect(await skipped()).toEqual(['1'])
  await pool.query(`update outboxd.skipped_row set retry_at = now()`)
  await pool.query(`update outboxd.outbox set is_current = false; insert into outboxd.outbox default values`)
  expect(await skipped()).toEqual([])
  expect(await captureLock.readDueCaptureWork()).toMatchObject({ dueId: null, served: { epoch: 2 } })
  await captureLock.skip([{ outboxId: '1', isCaptured: false, detail: 'this one neither' }])
  expect((await pool.query('select outbox, times from outboxd.skipped_row order by outbox')).rows).toEqual([
    { outbox: 1, times: 1 },
    { outbox: 2, times: 1 },
  ])
  await adoptAs(given, 'new')
  expect((await pool.query('select from outboxd.skipped_row')).rowCount).toBe(0)
})

test('two rows with one id in a batch are a `row_conflict`, and neither is captured', async () => {
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

test('by a sequence: a restarted sequence is noticed, although its rows are behind the cursor', async () => {
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
  expect(await mayHaveWaitingRows(outbox)).toBe(true) // so that the daemon claims, and reports it
})

for (const [name, createdAt] of [
  ['with created_at', 'created_at: created_at\n'],
  ['without created_at', ''],
]) {
  const bySequence = {
    ddl: `create table source (id bigint generated always as identity primary key, ${columns})`,
    yaml: `table: source\nid: id\ntype: type\nkey: key\npayload: payload\n${createdAt}state: none\nsequence: id`,
  }
  const fill = (n: number, rows: number) =>
    `insert into source (created_at, payload) select now(), '{"n": ${n}}' from generate_series(1, ${rows})`

  test(`by a sequence, rows ${name}: a restarted sequence that has passed the cursor is noticed, and no row is lost`, async () => {
    const given = await setup(bySequence)
    const { pool, capture, outbox } = given
    await pool.query(fill(1, 5))
    await rests(capture)
    await pool.query(`truncate source restart identity; ${fill(2, 9)}`)
    const after = new Outbox(pool, tableOf(bySequence.yaml), 1_000, pool)
    await expect(openClaim(after, anyRows)).rejects.toThrow('the ids of the outbox public.source')
    await expect(capture()).rejects.toThrow('outboxd adopt --new')
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    await adoptAs(given, 'new')
    expect(await capture()).toHaveLength(9)
  })

  test(`by a sequence, rows ${name}: a restarted sequence is noticed even if every record was rejected`, async () => {
    const { pool, capture } = await setup(bySequence)
    await pool.query(fill(1, 5))
    await rests(capture)
    await pool.query(`update outboxd.submission set state = 'rejected', held = false, due_at = null, ended_at = now()`)
    await pool.query(`truncate source restart identity; ${fill(2, 9)}`)
    await expect(capture()).rejects.toThrow('outboxd adopt --new')
  })

  test(`by a sequence, rows ${name}: after adopt --same, capture goes on`, async () => {
    const given = await setup(bySequence)
    const { pool, capture } = given
    await pool.query(fill(1, 5))
    await rests(capture)
    // The ERP may rewrite the table in this way.
    await pool.query(
      `alter sequence source_id_seq restart 6; update source set created_at = '2020-01-01', payload = '{}'; ${fill(2, 2)}`,
    )
    await expect(capture()).rejects.toThrow('outboxd adopt --same')
    await adoptAs(given, 'same')
    expect(await capture()).toEqual(['6', '7'])
    await rests(capture)
    await pool.query(fill(3, 1))
    expect(await capture()).toEqual(['8'])
  })

  test(`by a sequence, rows ${name}: edited or deleted rows and an altered sequence do not stop capture`, async () => {
    const { pool, capture } = await setup(bySequence)
    await pool.query(fill(1, 30))
    await rests(capture)
    await pool.query(`update source set payload = '{"n": 9}' where id > 25; delete from source where id in (27, 30)`)
    await pool.query(`alter sequence source_id_seq cache 1 increment 2; ${fill(2, 1)}`)
    expect(await capture()).toHaveLength(1)
    expect((await pool.query(problems)).rows).toEqual([])
  })
}

test('by a sequence, rows with created_at: a sequence that was set back and has passed the cursor is noticed', async () => {
  const { pool, capture } = await setup({
    ddl: `create table source (id bigint generated always as identity primary key, ${columns})`,
    yaml: 'table: source\nid: id\ntype: type\npayload: payload\ncreated_at: created_at\nstate: none\nsequence: id',
  })
  const fill = (rows: number) => `insert into source (created_at) select now() from generate_series(1, ${rows})`
  await pool.query(fill(5))
  await rests(capture)
  await pool.query(`delete from source; select setval('source_id_seq', 1, false)`)
  await pool.query(fill(9))
  await expect(capture()).rejects.toThrow('the ids of the outbox public.source')
})

for (const [name, createdAt] of [
  ['with created_at', 'created_at: cr\n'],
  ['without created_at', ''],
]) {
  const bySequence = {
    ddl: `create table source (id bigint generated by default as identity primary key, k text, d timestamptz default now(), f text,
      cr timestamptz default clock_timestamp())`,
    yaml: `table: source\nid: id\ntype: { constant: data }\nkey: k\npayload: { columns: all }\n${createdAt}state: none\nsequence: id`,
  }
  const fill = (what: string, rows: number) =>
    `insert into source (f) select '${what}' || n from generate_series(1, ${rows}) n`

  test(`by a sequence, rows ${name}: a table emptied and filled past the cursor in one transaction is noticed`, async () => {
    const { pool, capture, outbox } = await setup(bySequence)
    await pool.query(fill('first', 10))
    await rests(capture)
    await pool.query(`begin; truncate source restart identity; ${fill('second', 30)}; commit`)
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    await expect(capture()).rejects.toThrow('the ids of the outbox public.source')
    const after = new Outbox(pool, tableOf(bySequence.yaml), 1_000, pool)
    await expect(openClaim(after, anyRows)).rejects.toThrow('the ids of the outbox public.source')
  })

  test(`by a sequence, rows ${name}: a sequence set back and drawn up to the cursor is noticed`, async () => {
    const { pool, capture, outbox } = await setup(bySequence)
    await pool.query(fill('first', 10))
    await rests(capture)
    expect(await mayHaveWaitingRows(outbox)).toBe(false)
    await pool.query('delete from source')
    await pool.query(`begin; select setval('source_id_seq', 1, false); ${fill('second', 10)}; commit`)
    expect(await mayHaveWaitingRows(outbox)).toBe(true) // so that the daemon claims, and reports it
    if (createdAt) await expect(capture()).rejects.toThrow('the ids of the outbox public.source')
    else {
      expect(await capture()).toEqual([])
      expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict', subject: '' }])
      expect(await mayHaveWaitingRows(outbox)).toBe(false) // reported once
    }
  })

  test(`by a sequence, rows ${name}: after an id far ahead of the sequence, later rows are not missed`, async () => {
    const { pool, capture, outbox } = await setup(bySequence)
    await pool.query(`insert into source (id, f) values (1000, 'imported')`)
    expect(await capture()).toEqual(['1000'])
    await rests(capture)
    await pool.query(fill('first', 1))
    await rests(capture)
    await pool.query(`insert into source (id, f) values (2000, 'imported'); ${fill('second', 2)}`)
    expect(await capture()).toEqual(['2', '3', '2000'])
    await rests(capture)
    expect((await pool.query('select position from outboxd.outbox_cursor')).rows).toEqual([{ position: ['3'] }])
    expect((await readBacklog(outbox)).waiting).toBe(0)
    expect((await pool.query(problems)).rows).toEqual([])
  })

  test(`by a sequence, rows ${name}: adopt --same repairs a cursor ahead of the sequence, and no row is lost`, async () => {
    const given = await setup(bySequence)
    const { pool, capture } = given
    await pool.query(`${fill('first', 2)}; insert into source (id, f) values (1000, 'imported')`)
    await rests(capture)
    await pool.query(`update outboxd.outbox_cursor set position = '{1000}'; ${fill('second', 1)}`)
    await expect(capture()).rejects.toThrow('its sequence stands at 3')
    await adoptAs(given, 'same')
    expect(await capture()).toEqual(['3'])
    await rests(capture)
    await pool.query(fill('third', 1))
    expect(await capture()).toEqual(['4'])
  })
}

test('thousands of edited rows without created_at are one problem for the table, and new rows are captured', async () => {
  const given = await setup(tableForm(forms['the order of transactions, without created_at']))
  const { pool, capture, outbox } = given
  await pool.query(`insert into source (id, key) select n, 'k' || n from generate_series(1, 1500) n`)
  while ((await capture(500)).length > 0);
  await pool.query(`update source set payload = '{"n": 2}'; ${insert(2001, '2026-11-01', 1)}`)
  expect(await capture()).toEqual(['2001'])
  const told = { kind: 'row_conflict', subject: '' }
  expect((await pool.query(problems)).rows).toEqual([
    { ...told, detail: expect.stringMatching(/^1500 rows .*\(1, 2, 3, 4, 5\).*adopt --same.*adopt --new/) },
  ])
  await pool.query(`update source set key = 'other' || id where id <= 1500; ${insert(2002, '2026-11-01', 1)}`)
  expect(await capture()).toEqual(['2002'])
  const { rows } = await pool.query(`select count(*)::int as n from outboxd.problem where kind = 'row_conflict'`)
  expect(rows).toEqual([{ n: 101 }])
  expect((await pool.query('select from outboxd.skipped_row')).rowCount).toBe(0)

  await adoptAs(given, 'same')
  await pool.query(`update source set key = 'k' || id, payload = '{"n": 3}'; ${insert(2003, '2026-11-01', 1)}`)
  expect(await capture()).toEqual(['2003'])
  expect((await pool.query(`${problems} where subject = ''`)).rows).toEqual([])
  const [first] = (await pool.query(`select row_stamp as stamp from outboxd.submission where outbox_id = '1'`)).rows
  await writeBackRows(outbox, async () => [
    { outboxId: '1', ...first, state: 'completed', transactionId: 't', errorCode: null, error: null },
  ])
  expect((await pool.query('select said from source where id = 1')).rows).toEqual([{ said: 'completed' }])
})

test('a marked row gets its outcome even if the ERP has edited it since', async () => {
  const { pool, capture, outbox } = await setup(tableForm(forms['rows with a mark']))
  await pool.query(insert(1, '2026-11-01', 1))
  await capture()
  const [first] = (await pool.query('select row_stamp as stamp from outboxd.submission')).rows
  await pool.query(`update source set payload = '{"n": 2}'`)
  await writeBackRows(outbox, async () => [
    { outboxId: '1', ...first, state: 'completed', transactionId: 't', errorCode: null, error: null },
  ])
  expect((await pool.query('select said from source')).rows).toEqual([{ said: 'completed' }])
})

test('a ledger belongs to one table and id column, and refuses a different one', async () => {
  const { pool, capture } = await setup(tableForm(forms['rows with a mark']))
  await capture()
  const other = new Outbox(pool, 'outbox', 1_000, pool)
  const why =
    /the ledger belongs to the outbox public\.source .*with ids in the column id, and the configuration names public\.outbox/
  await expect(openClaim(other, anyRows)).rejects.toThrow(why)
  await expect(readBacklog(other)).rejects.toThrow(why)
  await expect(writeBackRows(other, async () => [])).rejects.toThrow(why)
})

test.each(
  Object.entries(forms),
)('%s: a row that was unreadable when it was captured is the same record once it can be read', async (_, form) => {
  const { pool, capture } = await setup(tableForm(form))
  await pool.query(insert(1, '2026-11-01', 1))
  await capture()
  await pool.query(`update outboxd.submission set type = '', key = null, payload = null, row_stamp = null, recorded_at = now();
    delete from outboxd.outbox_cursor; update source set taken = false, payload = '{"n": 2}'`)
  await capture()
  expect((await pool.query(problems)).rows).toEqual([])
})

test.each([
  'same',
  null,
] as const)('only an operator who says that the rows are the same says that the ERP edits them: %s', async (rows) => {
  const { pool, outbox, capture } = await setup(tableForm(forms['rows with a mark and created_at']))
  await pool.query(insert(1, '2026-11-01', 1))
  await capture()
  await pool.query(`update source set taken = false, created_at = '2026-11-02'`)
  await capture()
  expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict' }])
  await adoptOutbox({ ledger: pool, actor: testActor }, { identity: await outbox.readIdentity(), rows, start: null })
  const said = await pool.query('select rows_edited from outboxd.outbox where is_current')
  expect(said.rows).toEqual([{ rows_edited: rows === 'same' }])
})

/** Adopts the outbox as an operator does. */
async function adoptAs({ pool, outbox }: Setup, rows: 'same' | 'new'): Promise<void> {
  const identity = await outbox.readIdentity()
  await adoptOutbox({ ledger: pool, actor: testActor }, { identity, rows, start: null })
}

/** Captures until no row is left and the cursor has passed the captured rows. */
async function rests(capture: () => Promise<string[]>): Promise<void> {
  while ((await capture()).length > 0);
  await capture()
}
