import { describe, expect, test } from 'vitest'
import type { State } from '../../src/model/submission.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { anyRows, openClaim, setup } from './setup.ts'

const status = (state: State, more: { error?: string; transactionId?: string; errorCode?: string } = {}) => ({
  outboxId: '1',
  state,
  transactionId: null,
  errorCode: null,
  error: null,
  ...more,
})

test('a status column gets its own values, and a state without a value is not written', async () => {
  const { pool, report, capture } = await setup({
    ddl: `create type progress as enum ('PENDING', 'BUSY', 'SENT', 'ERROR');
      create table message (id int primary key, status progress not null default 'PENDING', note varchar(5), tx text, code text,
        at timestamp)`,
    yaml: `
table: message
id: id
type: { constant: data }
payload: { columns: [id] }
state: { status: status, new: PENDING, queued: BUSY, completed: SENT, failed: ERROR }
write: { note: error, tx: transaction_id, code: error_code, at: now }`,
  })
  await pool.query('insert into message values (1)')
  const row = async () => (await pool.query('select status, note, tx, code, at is not null as at from message')).rows[0]
  expect(await capture()).toEqual(['1'])
  expect(await row()).toEqual({ status: 'BUSY', note: null, tx: null, code: null, at: true })
  await report(status('uncertain', { error: 'too long a text' }))
  expect(await row()).toMatchObject({ status: 'BUSY', note: 'too l' })
  await report(status('failed', { errorCode: 'E001' }))
  expect(await row()).toMatchObject({ status: 'ERROR', code: 'E001', note: null })
  await report(status('completed', { transactionId: 'TX-1' }))
  await report(status('failed'))
  expect(await row()).toMatchObject({ status: 'SENT', tx: 'TX-1' })
})

test('times and dates without a time zone are written in the zone of created_at', async () => {
  const { pool, report, capture } = await setup({
    ddl: `create table message (id int primary key, made timestamp, sent timestamp, at timestamp, day date);
      insert into message (id) values (1)`,
    yaml: `
table: message
id: id
type: { constant: data }
created_at: { column: made, timezone: Pacific/Kiritimati }
payload: { columns: [id] }
state: { timestamp: sent, set: [queued] }
write: { at: now, day: now }`,
  })
  await capture()
  await report(status('completed'))
  const { rows } = await pool.query(
    `select array[sent, at]::text[] as at, day = any(array[at, sent]::date[]) as same, sent > local - interval '1 minute' and sent <= local
       and at > local - interval '1 minute' and at <= local as "isLocal"
     from message, lateral (select clock_timestamp() at time zone 'Pacific/Kiritimati' as local) l`,
  )
  expect(rows).toMatchObject([{ same: true, isLocal: true }])
})

test.each([
  ['transaction_id', { transactionId: 'a-transaction-of-the-service-with-a-long-id' }],
  ['error_code', { errorCode: 'an-error-code-of-the-service-that-is-longer' }],
])('a %s that is longer than its column is refused by Postgres, and never cut', async (what, given) => {
  const { pool, report, capture } = await setup({
    ddl: `create table message (id int primary key, sent timestamptz, note varchar(36)); insert into message values (1)`,
    yaml: `
table: message
id: id
type: { constant: data }
payload: { columns: [id] }
state: { timestamp: sent, set: [queued] }
write: { note: ${what} }`,
  })
  await capture()
  await expect(report(status('failed', given))).rejects.toThrow('value too long for type character varying(36)')
  expect((await pool.query('select note from message')).rows).toEqual([{ note: null }])
})

test('a row that does not map is marked, even if outbox.yaml has no value for rejected', async () => {
  const { pool, capture } = await setup({
    ddl: `create table message (id int primary key, state text default 'N', body bytea)`,
    yaml: `
table: message
id: id
type: { constant: data }
payload: body
state: { status: state, new: [N, null], queued: T }`,
  })
  await pool.query(`insert into message values (1, 'N', null), (2, null, '{}'), (3, 'X', '{}')`)
  expect(await capture()).toEqual(['1', '2'])
  expect(await capture()).toEqual([])
  expect((await pool.query('select state from message order by id')).rows.map(({ state }) => state)).toEqual([
    'T',
    'T',
    'X',
  ])
})

test.each([
  ['boolean', 'true', 'false', ''],
  ['smallint', '2', '0', ', new: 0, done: 2'],
])('a flag of type %s is set at the states that the file names', async (type, done, open, more) => {
  const { pool, report, capture } = await setup({
    ddl: `create table message (id int primary key, sent ${type} default '${open}')`,
    yaml: `
table: message
id: id
type: { constant: data }
payload: { columns: [id] }
state: { flag: sent, set: [completed, discarded]${more} }`,
  })
  await pool.query('insert into message values (1)')
  const sent = async () => (await pool.query('select sent::text from message')).rows[0].sent
  expect(await capture()).toEqual(['1'])
  expect(await capture()).toEqual([])
  await report(status('failed'))
  expect(await sent()).toBe(open)
  await report(status('completed'))
  expect(await sent()).toBe(done)
})

test('a timestamp is set once and cleared when the state changes, and failed rows do not delay new rows', async () => {
  const { pool, report, capture } = await setup({
    ddl: 'create table message (id int primary key, done_at timestamptz, given_up date)',
    yaml: `
table: message
id: id
type: { constant: data }
payload: { columns: [id] }
state: { timestamp: done_at, set: [completed] }
write: { given_up: { what: now, on: [failed, rejected] } }`,
  })
  await pool.query('insert into message select generate_series(1, 3000)')
  const row = async () => (await pool.query('select done_at, given_up from message where id = 1')).rows[0]
  for (let i = 0; i < 30; i++) await capture()
  await report(status('failed'))
  expect(await row()).toMatchObject({ done_at: null, given_up: expect.any(Date) })
  await pool.query('insert into message values (3001)')
  expect(await capture()).toEqual(['3001'])
  await report(status('completed'))
  const first = await row()
  expect(first).toMatchObject({ done_at: expect.any(Date), given_up: null })
  await report(status('completed'))
  expect(await row()).toEqual(first)
})

test('all columns that the table does not have are named at once', async () => {
  const { outbox } = await setup({
    ddl: 'create table message (id int primary key, created int, body xml)',
    yaml: `
table: message
id: id
type: kind
payload: body
state: { status: stat, new: N, queued: T }
write: { nots: error }`,
  })
  const refusal = await mayHaveWaitingRows(outbox).catch((error: Error) => error.message)
  expect(refusal).toBe(
    ['kind" (type)', 'stat" (state)', 'nots" (write)']
      .map((what) => `outbox.yaml: the table "message" has no column "${what}; it has id, created, body`)
      .join('\n'),
  )
})

test('a status column with only a value for waiting rows is read and not written', async () => {
  const { pool, capture, report } = await setup({
    ddl: `create table sale (id bigint generated always as identity primary key, body jsonb, progress text default 'open', trouble text)`,
    yaml: `table: sale\nid: id\ntype: { constant: data }\npayload: body\nstate: { status: progress, new: open }\nwrite: { trouble: error }\n`,
  })
  await pool.query(`insert into sale (body) values ('{}')`)
  expect(await capture()).toEqual(['1'])
  await report({ outboxId: '1', state: 'failed', transactionId: null, errorCode: null, error: 'it was refused' })
  const { rows } = await pool.query('select progress, trouble from sale')
  expect(rows).toEqual([{ progress: 'open', trouble: 'it was refused' }])
  expect(await capture()).toEqual([])
})

describe('every form that marks on capture marks a row in any first state', () => {
  const write = '\nwrite: { trouble: { what: error, on: [rejected, discarded] } }'
  const forms = [
    'state: { status: progress, new: open, queued: taken }',
    'state: { status: progress, new: open, queued: taken, rejected: bad, uncertain: unsure, discarded: left }',
    'state: { flag: done, set: [queued] }',
    'state: { flag: done, set: [queued, completed, discarded] }',
    'state: { timestamp: done_at, set: [queued] }',
    'state: { timestamp: done_at, set: [queued, completed, failed] }',
  ]
  test.each(forms.flatMap((form) => [form, `${form}${write}`]))('%s', async (form) => {
    const { pool, outbox } = await setup({
      ddl: `create table sale (id int primary key, progress text default 'open', done boolean default false, done_at timestamptz, trouble text)`,
      yaml: `table: sale\nid: id\ntype: { constant: data }\npayload: { columns: [id] }\n${form}`,
    })
    const firstStates: State[] = ['queued', 'rejected', 'uncertain', 'discarded']
    await pool.query('insert into sale select generate_series(1, 4)')
    await using claimed = await openClaim(outbox, anyRows)
    const statuses = firstStates.map((state, i) => ({ ...status(state), outboxId: String(i + 1) }))
    expect(await claimed.markReturningUnwrittenIds(statuses)).toEqual([])
    expect(await mayHaveWaitingRows(outbox)).toBe(false)
  })
})

test('a JSON column that is written only at some states keeps its value at other open states', async () => {
  const { pool, report } = await setup({
    ddl: `create table sale (id int primary key, progress text, trouble jsonb, words json, at jsonb)`,
    yaml: `table: sale\nid: id\ntype: { constant: data }\npayload: { columns: [id] }
state: { status: progress, new: open, queued: taken, sending: sending, completed: sent }
write: { trouble: { what: error, on: [failed] }, words: { what: error, on: [failed] }, at: { what: now, on: [failed] } }`,
  })
  await pool.query(`insert into sale values (1, 'taken')`)
  const row = async () => (await pool.query('select trouble, words, at from sale')).rows[0]
  await report(status('failed', { error: 'no "x"' }))
  const written = await row()
  expect(written).toEqual({ trouble: 'no "x"', words: 'no "x"', at: expect.any(String) })
  for (const state of ['queued', 'sending', 'queued'] as const) await report(status(state))
  expect(await row()).toEqual(written)
  await report(status('completed'))
  expect(await row()).toEqual({ trouble: null, words: null, at: null })
})
