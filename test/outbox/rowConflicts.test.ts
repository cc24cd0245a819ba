import { expect, test } from 'vitest'
import { adopt } from '../../src/ledger/operator/adopt.ts'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { createPeriodicTableComparison } from '../../src/outbox/comparison.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mayHaveWaitingRows, readWaitingRows } from '../../src/outbox/readRows.ts'
import { clearOutdatedRowConflicts } from '../../src/outbox/rowConflicts.ts'
import { testActor } from '../support/testActor.ts'
import { anyRows, openClaim, type Setup, setup, tableOf } from './setup.ts'
import { writeBackRows } from './writeBackRows.ts'

/** A row with a known id and another created_at is a different row. */

const columns = `type text default 'data', key text, payload jsonb default '{}', created_at timestamptz`
const forms = {
  'rows with a mark': 'created_at: created_at\nstate: { flag: taken, set: [queued] }\nwrite: { said: state }',
  'rows with a mark at the end':
    'created_at: created_at\nstate: { flag: taken, set: [completed] }\nwrite: { said: state }',
  'the order of transactions': 'created_at: created_at\nstate: none\nwrite: { said: state }',
}
const tableForm = (yaml: string) => ({
  ddl: `create table source (id bigint primary key, ${columns}, taken boolean default false, said text)`,
  yaml: `table: source\nid: id\ntype: type\nkey: key\npayload: payload\n${yaml}`,
})
const insert = (id: number, created: string, n: number) =>
  `insert into source (id, created_at, payload) values (${id}, '${created}', '{"n": ${n}}')`
const problems = 'select kind, subject, detail from outboxd.problem'

/** Writes the outcome of the record of row 1 back. */
async function complete({ pool, outbox }: Setup) {
  const [first] = (
    await pool.query(
      `select outbox_id as "outboxId", row_created as created from outboxd.submission where outbox_id = '1'`,
    )
  ).rows
  const status = { state: 'completed' as const, transactionId: 't', errorCode: null, error: null }
  return writeBackRows(outbox, [{ ...first, ...status }])
}

for (const [name, yaml] of Object.entries(forms)) {
  test(`${name}: a different row with a known id is not sent, gets no outcome of the first, and is reported`, async () => {
    const given = await setup(tableForm(yaml))
    const { pool, capture, captureRecords } = given
    await pool.query(insert(1, '2026-11-01', 1))
    expect(await capture()).toEqual(['1'])
    await pool.query(`truncate source; ${insert(1, '2026-11-02', 2)}; ${insert(2, '2026-11-02', 3)}`)
    expect(await capture()).toEqual(['2'])
    expect(await complete(given)).toEqual(['another'])
    const { rows } = await pool.query('select id, said from source where id = 1')
    expect(rows).toEqual([{ id: '1', said: null }])
    expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict', subject: '1' }])
    expect(await captureRecords()).toEqual([])
    expect((await pool.query('select count(*)::int as n from outboxd.submission')).rows).toEqual([{ n: 2 }])
  })

  test(`${name}: a row that the ERP edits and sets back to waiting is the same record, and gets its outcome again`, async () => {
    const given = await setup(tableForm(yaml))
    const { pool, capture } = given
    await pool.query(insert(1, '2026-11-01', 1))
    expect(await capture()).toEqual(['1'])
    await pool.query('update outboxd.submission set report_due = false')
    await pool.query(`update source set taken = false, said = null, payload = '{"n": 9}', key = 'k'`)
    await capture()
    await complete(given)
    expect((await pool.query('select said from source')).rows).toEqual([{ said: 'completed' }])
    expect((await pool.query(problems)).rows).toEqual([])
    expect((await pool.query('select from outboxd.submission')).rowCount).toBe(1)
  })

  test(`${name}: a row that was unreadable when it was captured is the same record once it can be read`, async () => {
    const { pool, capture } = await setup(tableForm(yaml))
    await pool.query(insert(1, '2026-11-01', 1))
    await capture()
    await pool.query(`update outboxd.submission set type = '', key = null, payload = null, row_created = null, recorded_at = now();
      delete from outboxd.outbox_cursor; update source set taken = false, payload = '{"n": 2}'`)
    await capture()
    expect((await pool.query(problems)).rows).toEqual([])
  })
}

test('a conflicting row that gets a new id is captured', async () => {
  const { pool, capture, outbox } = await setup(tableForm(forms['rows with a mark']))
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
  const { pool, capture, outbox } = await setup(tableForm(forms['rows with a mark']))
  const ids = [1, 2, 3, 4]
  await pool.query(ids.map((id) => insert(id, '2026-11-01', 1)).join(';'))
  await capture()
  await pool.query(`truncate source; ${ids.map((id) => insert(id, '2026-11-02', 2)).join(';')}`)
  await capture()
  await clearOutdatedRowConflicts(outbox)
  const named = async () => (await pool.query(`${problems} order by subject`)).rows.map(({ subject }) => subject)
  expect(await named()).toEqual(['1', '2', '3', '4'])
  await pool.query(
    `delete from source where id = 1; update source set id = 9 where id = 2; update source set created_at = '2026-11-01' where id = 3`,
  )
  await clearOutdatedRowConflicts(outbox)
  expect(await named()).toEqual(['4'])
})

test('two rows with one id in a batch are a `row_conflict`, and neither is captured', async () => {
  const { yaml } = tableForm('id_unique: promised\ncreated_at: created_at\nstate: { flag: taken, set: [queued] }')
  const { pool, capture } = await setup({
    ddl: `create table below (id bigint, ${columns}, taken boolean default false, said text); create view source as select * from below`,
    yaml,
  })
  await pool.query(`${insert(1, '2026-11-01', 1)}; ${insert(1, '2026-11-01', 2)}; ${insert(2, '2026-11-01', 3)}`)
  expect(await capture()).toEqual(['2'])
  expect((await pool.query(problems)).rows).toEqual([
    { kind: 'row_conflict', subject: '1', detail: expect.stringContaining('two rows of the outbox have this id') },
  ])
})

test('a ledger belongs to one table and id column, and refuses a different one until it is said to be the same', async () => {
  const { pool, capture } = await setup(tableForm(forms['rows with a mark']))
  await capture()
  const other = new Outbox(pool, 'outbox', 1_000, pool)
  const why =
    'the ledger belongs to the outbox public.source with ids in the column id, and the configuration names public.outbox'
  await expect(openClaim(other, anyRows)).rejects.toThrow(why)
  await expect(readBacklog(other)).rejects.toThrow(why)
  await expect(writeBackRows(other, [])).rejects.toThrow(why)
  await adoptSame(pool, other)
  expect(await readBacklog(other)).toMatchObject({ waiting: 0 })
})

const bySequence = {
  ddl: `create table source (id bigint generated by default as identity primary key, ${columns})`,
  yaml: 'table: source\nid: id\ntype: type\nkey: key\npayload: payload\nstate: none\nsequence: id',
}
const fill = (rows: number) => `insert into source (created_at) select now() from generate_series(1, ${rows})`

test('by a sequence: a restarted sequence is noticed, although its rows are behind the cursor', async () => {
  const { pool, capture, outbox } = await setup(bySequence)
  await pool.query(fill(5))
  await rests(capture)
  await pool.query(`truncate source restart identity; ${fill(1)}`)
  await expect(capture()).rejects.toThrow('the ids of the outbox public.source')
  await expect(capture()).rejects.toThrow('LEDGER_SCHEMA')
  expect(await mayHaveWaitingRows(outbox)).toBe(true) // so that the daemon claims, and reports it
})

test('by a sequence: a restarted sequence that has passed the cursor is noticed', async () => {
  const { pool, capture, outbox } = await setup(bySequence)
  await pool.query(fill(5))
  await rests(capture)
  await pool.query(`begin; truncate source restart identity; ${fill(9)}; commit`)
  expect(await mayHaveWaitingRows(outbox)).toBe(true)
  const after = new Outbox(pool, tableOf(bySequence.yaml), 1_000, pool)
  await expect(openClaim(after, anyRows)).rejects.toThrow('was restarted or altered')
  await expect(capture()).rejects.toThrow('outboxd adopt --same')
})

test('by a sequence: after adopt --same, capture goes on behind an altered sequence', async () => {
  const { pool, capture, outbox } = await setup(bySequence)
  await pool.query(fill(5))
  await rests(capture)
  await pool.query(
    `alter sequence source_id_seq cache 1 increment 2; update source set payload = '{"n": 9}'; ${fill(1)}`,
  )
  await expect(capture()).rejects.toThrow('outboxd adopt --same')
  await adoptSame(pool, outbox)
  expect(await capture()).toEqual(['7'])
  await rests(capture)
  await pool.query(fill(1))
  expect(await capture()).toEqual(['9'])
})

test('by a sequence: edited and deleted rows do not stop capture', async () => {
  const { pool, capture } = await setup(bySequence)
  await pool.query(fill(30))
  await rests(capture)
  await pool.query(
    `update source set payload = '{"n": 9}' where id > 25; delete from source where id in (27, 30); ${fill(1)}`,
  )
  expect(await capture()).toEqual(['31'])
  expect((await pool.query(problems)).rows).toEqual([])
})

test('by a sequence: after an id far ahead of the sequence, later rows are not missed', async () => {
  const { pool, capture, outbox } = await setup(bySequence)
  await pool.query(`insert into source (id) values (1000)`)
  expect(await capture()).toEqual(['1000'])
  await rests(capture)
  await pool.query(fill(1))
  await rests(capture)
  await pool.query(`insert into source (id) values (2000); ${fill(2)}`)
  expect(await capture()).toEqual(['2', '3', '2000'])
  await rests(capture)
  expect((await pool.query('select position from outboxd.outbox_cursor')).rows).toEqual([{ position: ['3'] }])
  expect((await readBacklog(outbox)).waiting).toBe(0)
  expect((await pool.query(problems)).rows).toEqual([])
})

test('by a sequence: a cursor ahead of the sequence stops capture until the sequence is set', async () => {
  const { pool, capture } = await setup(bySequence)
  await pool.query(fill(2))
  await rests(capture)
  await pool.query(`update outboxd.outbox_cursor set position = '{1000}'; ${fill(1)}`)
  await expect(capture()).rejects.toThrow('its sequence stands at 3')
  await pool.query(`select setval('source_id_seq', 1000); ${fill(1)}`)
  expect(await capture()).toEqual(['1001'])
})

test('by a sequence: a sequence set back that has passed the cursor while nothing was captured is a conflict of its rows', async () => {
  const timed = { ...bySequence, yaml: `${bySequence.yaml}\ncreated_at: created_at` }
  const { pool, ledger, capture, outbox } = await setup(timed)
  await pool.query(fill(3))
  await rests(capture)
  await pool.query(`delete from source; select setval('source_id_seq', 1, false); ${fill(5)}`)
  expect(await capture()).toEqual(['4', '5'])
  await createPeriodicTableComparison({ ledger, outbox, who: 'test' }).runOnce(0, () => true)
  expect((await pool.query(`${problems} order by subject`)).rows.map(({ subject }) => subject)).toEqual(['1', '2', '3'])
})

test('a search that stores no conflicts moves no cursor, so that the next claim meets them', async () => {
  const { pool, capture, outbox } = await setup(tableForm(forms['the order of transactions']))
  await pool.query(insert(1, '2026-11-01', 1))
  await rests(capture)
  await pool.query(`truncate source; ${insert(1, '2026-11-02', 2)}`)
  expect(await readWaitingRows(outbox, 10)).toEqual([])
  const daemons = new Outbox(pool, tableOf(tableForm(forms['the order of transactions']).yaml), 1_000, pool)
  const claimed = await openClaim(daemons, anyRows)
  expect(claimed.outboxIds).toEqual([])
  await claimed[Symbol.asyncDispose]()
  expect((await pool.query(problems)).rows).toMatchObject([{ kind: 'row_conflict', subject: '1' }])
})

const service = { baseUrl: 'https://service.example', authUrl: 'https://auth.example', clientId: 'me' }
const adoptSame = async (pool: Setup['pool'], outbox: Outbox) =>
  adopt({ ledger: pool, actor: testActor }, { table: await outbox.readIdentity(), service, start: null, isSame: true })

/** Captures until no row is left and the cursor has passed the captured rows. */
async function rests(capture: () => Promise<string[]>): Promise<void> {
  while ((await capture()).length > 0);
  await capture()
}
