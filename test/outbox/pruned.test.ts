import { describe, expect, test } from 'vitest'
import { readBacklog, readInitialBacklog } from '../../src/outbox/backlog.ts'
import { findExistingIds } from '../../src/outbox/readRows.ts'
import { readRowsUnderWay } from '../../src/outbox/rowsUnderWay.ts'
import { readRowsBehindCursor } from '../../src/outbox/unclaimedRows.ts'
import { completeAgo, pruneAll } from '../support/retention.ts'
import { rests, setup } from './setup.ts'

/** No row is sent a second time because its record was pruned, in any form of outbox. */

const columns = `id bigint generated always as identity primary key, type text default 'data', key text,
  payload jsonb default '{}', created_at timestamptz default now()`
const ddl = `create table source (${columns}, done boolean not null default false, sent_at timestamptz)`
const common = `
table: source
id: id
type: type
key: key
payload: payload`
const remembered = {
  'a position in a sequence': `${common}\nstate: none\nsequence: id`,
  'the order of transactions': `${common}\nstate: none`,
  'a time that is set at the end, but was not set': `${common}\nstate: { timestamp: sent_at, set: [completed] }`,
}
const claimed = `${common}
created_at: created_at
state: { flag: done, set: [queued] }
write: {}`.replace('\nwrite: {}', '')

const gone = { days: 30, payloadDays: null }

async function count(pool: { query(text: string): Promise<{ rows: unknown[] }> }, table: string) {
  return (await pool.query(`select from outboxd.${table}`)).rows.length
}

describe.each(Object.entries(remembered))('%s', (_, yaml) => {
  test('a row that waits again after its record was pruned is recognised and not sent', async () => {
    const { pool, capture, outbox, describedAs } = await setup({ ddl, yaml })
    await pool.query(`insert into source (key) select 'k' from generate_series(1, 5)`)
    expect(await capture()).toHaveLength(5)
    await rests({ capture, outbox })
    await completeAgo(pool, 31)
    expect(await pruneAll(pool, gone)).toMatchObject({ submissions: 5 })
    expect(await count(pool, 'submission')).toBe(0)
    expect(await capture()).toEqual([])
    expect(await describedAs(yaml).capture()).toEqual([])
    await pool.query('update outboxd.ledger set readings = readings + 1')
    expect(await describedAs(yaml).capture()).toEqual([])
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 0 })
    expect(await readRowsBehindCursor(await outbox.open(), { after: null, upTo: null })).toEqual({
      ids: [],
      conflicts: [],
    })
    expect(await readInitialBacklog(outbox)).toBeNull()
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['6'])
  })
})

test('by a sequence: a restarted sequence is noticed, even if all captured records are pruned', async () => {
  const { pool, capture, outbox, describedAs } = await setup({
    ddl,
    yaml: `${remembered['a position in a sequence']}\ncreated_at: created_at`,
  })
  await pool.query(`insert into source (key) select 'k' from generate_series(1, 5)`)
  expect(await capture()).toHaveLength(5)
  await rests({ capture, outbox })
  await completeAgo(pool, 31)
  await pruneAll(pool, gone)
  await pool.query('truncate source restart identity')
  await pool.query(`insert into source (key) select 'other' from generate_series(1, 9)`)
  const anew = describedAs(`${remembered['a position in a sequence']}\ncreated_at: created_at`)
  await expect(anew.capture()).rejects.toThrow('restarted or altered')
})

describe('rows with a mark', () => {
  test('if the ERP removes the mark of a pruned row, its outcome is written back again', async () => {
    const yaml = `${common}\ncreated_at: created_at\nstate: { status: status, new: N, queued: Q, completed: C }\nwrite: { tx: transaction_id }`
    const { pool, capture, outbox } = await setup({
      ddl: `create table source (${columns}, status text not null default 'N', tx text)`,
      yaml,
    })
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['1'])
    await completeAgo(pool, 31)
    await pool.query(`update source set status = 'C', tx = 'tx-1'`)
    await pruneAll(pool, gone)
    expect((await readRowsUnderWay(await outbox.open(), { after: null, upTo: null })).unknown).toEqual([])
    await pool.query(`update source set status = 'N', tx = null`)
    await capture()
    const { rows } = await pool.query(
      'select outbox_id, state, transaction_id, attempt, body, report_due from outboxd.submission',
    )
    expect(rows).toEqual([
      { outbox_id: '1', state: 'completed', transaction_id: 'tx-1', attempt: 0, body: null, report_due: true },
    ])
    expect(await count(pool, 'pruned_submission')).toBe(0)
    await completeAgo(pool, 31)
    await pool.query('update outboxd.submission set report_due = false')
    expect(await pruneAll(pool, gone)).toMatchObject({ submissions: 1 }) // it is pruned again
    expect(await count(pool, 'pruned_submission')).toBe(1)
  })

  test('a different row with the id of a pruned record is a conflict', async () => {
    const { pool, capture } = await setup({ ddl, yaml: claimed })
    await pool.query('insert into source default values')
    expect(await capture()).toEqual(['1'])
    await completeAgo(pool, 31)
    await pruneAll(pool, gone)
    await pool.query(`update source set done = false, created_at = '2026-01-01'`)
    expect(await capture()).toEqual([])
    const { rows } = await pool.query(`select subject, detail from outboxd.problem where kind = 'row_conflict'`)
    expect(rows).toEqual([{ subject: '1', detail: expect.stringContaining('its record is completed') }])
    expect(await count(pool, 'submission')).toBe(0)
  })

  test('if one mark says both captured and done, the row of a pruned record does not count as lost', async () => {
    const { pool, capture, outbox } = await setup({ ddl, yaml: claimed })
    await pool.query('insert into source default values')
    await capture()
    await completeAgo(pool, 31)
    await pruneAll(pool, gone)
    expect((await readRowsUnderWay(await outbox.open(), { after: null, upTo: null })).unknown).toEqual([])
  })
})

test('an id is kept for a year after the end, and longer while its row is in the table', async () => {
  const { pool, capture, outbox } = await setup({ ddl, yaml: claimed })
  const known = async () =>
    (await pool.query('select outbox_id as id from outboxd.taken_row order by 1')).rows.map(({ id }) => id)
  await pool.query('insert into source (key) select null from generate_series(1, 3)')
  await capture()
  await completeAgo(pool, 31)
  await pool.query(`update outboxd.submission set ended_at = now() - interval '400 days' where outbox_id in ('1', '2')`)
  await pool.query('delete from source where id in (2, 3)')
  expect(await pruneAll(pool, gone, { findExistingRows: (ids) => findExistingIds(outbox, ids) })).toMatchObject({
    submissions: 3,
    forgotten: 0,
    end: 'through',
  })
  const aMonthLater = `update outboxd.pruned_submission set look_at = look_at - interval '31 days'`
  await pool.query(aMonthLater)
  expect(await pruneAll(pool, gone, { findExistingRows: (ids) => findExistingIds(outbox, ids) })).toMatchObject({
    forgotten: 1,
  }) // its row was missing twice
  expect(await known()).toEqual(['1', '3'])
  await pool.query('delete from source')
  expect(await pruneAll(pool, gone, { findExistingRows: (ids) => findExistingIds(outbox, ids) })).toMatchObject({
    forgotten: 0,
  })
  for (let month = 0; month < 13; month++) {
    await pool.query(aMonthLater)
    await pruneAll(pool, gone, { findExistingRows: (ids) => findExistingIds(outbox, ids) })
  }
  expect(await known()).toEqual([])
})
