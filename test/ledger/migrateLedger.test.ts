import { readdirSync, readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { states } from '../../src/model.ts'
import { createDatabase } from '../support/database.ts'

const migration = (name: string) => readFileSync(`migrations/${name}.sql`, 'utf8')

test('0006: rows in every state become those of the first outbox, and positions are kept', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(`create schema outboxd; ${migration('0001_ledger')}; ${migration('0002_outbox_cursor')}`)
  for (const state of states)
    await pool.query(
      `insert into outboxd.submission (id, outbox_id, type, body, recorded_at, state, due_at, idempotency_key, claim_id,
         instance_id, transaction_id, job_id, accepted_at, poll_at, ended_at)
       select gen_random_uuid(), $1, 'data', '{}', now(), $1, case when $1 = 'queued' then now() end, gen_random_uuid(),
         case when $1 = 'sending' then gen_random_uuid() end, case when $1 = 'sending' then gen_random_uuid() end,
         't', case when $1 = 'accepted' then gen_random_uuid() end, now(), case when $1 = 'accepted' then now() end,
         case when $1 not in ('queued', 'sending', 'accepted') then now() end`,
      [state],
    )
  await pool.query(`insert into outboxd.outbox_cursor (outbox, position) values ('1.2.sequence', '{5}')`)
  const counted = 'select state, sum(delta)::int as n from outboxd.state_delta group by state order by state'
  const before = (await pool.query(counted)).rows
  await pool.query(migration('0006_outbox'))
  const { rows } = await pool.query('select outbox_id, outbox, row_stamp from outboxd.submission order by seq')
  expect(rows).toEqual(states.map((state) => ({ outbox_id: state, outbox: 1, row_stamp: null })))
  expect((await pool.query(counted)).rows).toEqual(before)
  expect((await pool.query('select epoch, position from outboxd.outbox_cursor')).rows).toEqual([
    { epoch: 1, position: ['5'] },
  ])
  expect((await pool.query('select id, table_name, is_current from outboxd.outbox')).rows).toEqual([
    { id: 1, table_name: null, is_current: true },
  ])
})

test('0011: positions and skipped rows are kept, and no row counts as edited', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  const before = readdirSync('migrations').filter((name) => /^\d/.test(name) && name < '0011')
  await pool.query(
    `create schema outboxd; ${before.map((name) => readFileSync(`migrations/${name}`, 'utf8')).join(';')}`,
  )
  await pool.query(`insert into outboxd.outbox_cursor (outbox, position) values ('1.2.sequence', '{5}');
    insert into outboxd.skipped_row (outbox_id, captured, retry_at) values ('7', false, now())`)
  await pool.query(migration('0011_same_rows'))
  expect((await pool.query('select position, sequence_file, same_upto from outboxd.outbox_cursor')).rows).toEqual([
    { position: ['5'], sequence_file: null, same_upto: null },
  ])
  expect((await pool.query('select outbox_id, outbox from outboxd.skipped_row')).rows).toEqual([
    { outbox_id: '7', outbox: 1 },
  ])
  expect((await pool.query('select rows_edited from outboxd.outbox')).rows).toEqual([{ rows_edited: false }])
})
