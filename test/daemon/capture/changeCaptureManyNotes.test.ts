import { expect, onTestFinished, test } from 'vitest'
import { noted, setupSale, trouble } from './setupChangeCapture.ts'

test('changes rolled back are not noted, and beyond the bounds one note says that changes are missing', async () => {
  const { pool } = await setupSale()
  await pool.query(`alter table outbox rename to away`)
  await pool.query(`begin; insert into sale values (1); rollback`)
  expect(await noted(pool)).toEqual([])
  await pool.query(`insert into sale select n from generate_series(10, 100009) n`)
  expect(await trouble(pool)).toMatchObject([{ notes: '100000', has_unknown: false }])
  await pool.query(`insert into sale select n from generate_series(200000, 300000) n`)
  expect(await trouble(pool)).toMatchObject([{ notes: '100001', has_unknown: true }])
  await pool.query(`insert into outboxd_capture.error (number, table_name, operation, sqlstate, message)
    select number, table_name, 'INSERT', '0', (select string_agg(md5(n::text || m), '') from generate_series(1, 40) m) from outboxd_capture.installed, generate_series(1, 65000) n;
    delete from outboxd_capture.error`)
  await pool.query(
    `begin; insert into sale values (2); insert into sale values (3); insert into line values (1, 1); commit`,
  )
  expect(await trouble(pool)).toMatchObject([{ notes: '3', has_unknown: true }])
  expect((await pool.query(`select outboxd_capture.dismiss('sale')`)).rows).toEqual([{ dismiss: '3' }])
  expect(await trouble(pool)).toEqual([])
})

const fullOfDismissedNotes = `alter table outboxd_capture.error set (autovacuum_enabled = off);
  insert into outboxd_capture.error (number, table_name, document_id, operation, sqlstate, message)
  select number, table_name, '1', 'INSERT', '0', repeat('x', 1900) from outboxd_capture.installed, generate_series(1, 106000) n;
  select outboxd_capture.dismiss('sale')`

test('above 200 MB of notes one note says that changes are missing, even if `dismiss` deletes it at the same time', async () => {
  const { pool } = await setupSale()
  await pool.query(`alter table outbox rename to away; ${fullOfDismissedNotes}`)
  await pool.query('insert into sale values (2); insert into sale values (3)')
  expect(await trouble(pool)).toMatchObject([{ notes: '1', has_unknown: true }])
  const person = await pool.connect()
  onTestFinished(() => person.release(true))
  await person.query(`begin; select outboxd_capture.dismiss('sale')`)
  await pool.query('insert into sale values (4)')
  await person.query('commit')
  expect(await trouble(pool)).toMatchObject([{ notes: '1', has_unknown: true }])
})

test('above 200 MB of notes, two serializable transactions of the ERP do not make each other fail', async () => {
  const { pool } = await setupSale()
  await pool.query(`alter table outbox rename to away; ${fullOfDismissedNotes}`)
  const sessions = await Promise.all([pool.connect(), pool.connect()])
  onTestFinished(() => sessions.forEach((session) => void session.release(true)))
  for (const session of sessions) await session.query('begin isolation level serializable; select 1')
  for (const [i, session] of sessions.entries()) await session.query(`insert into sale values (${i + 2})`)
  for (const session of sessions) await session.query('commit')
  expect(await trouble(pool)).toMatchObject([{ has_unknown: true }])
})

test('above 200 MB of notes, a repeatable read transaction notes a change after `dismiss` deleted the note that it sees', async () => {
  const { pool } = await setupSale()
  await pool.query(`alter table outbox rename to away; ${fullOfDismissedNotes}`)
  await pool.query('insert into sale values (2)')
  const erp = await pool.connect()
  onTestFinished(() => erp.release(true))
  await erp.query('begin isolation level repeatable read; select from sale')
  await pool.query(`select outboxd_capture.dismiss('sale')`)
  await erp.query('insert into sale values (3); commit')
  expect(await trouble(pool)).toMatchObject([{ notes: '1', has_unknown: true }])
})
