import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { asInstaller, captureFile, createRole } from '../../support/changeCapture.ts'
import { createDatabase } from '../../support/database.ts'

test('a table that 0.2 was installed on goes on as before, is told, and is captured as documents once it is installed again', async () => {
  const { pool, written, trouble } = await setup()
  // As 0.2 said: by a superuser.
  await pool.query(readFileSync('test/daemon/capture/version-0.2.0/install.sql', 'utf8'))
  await pool.query(`select outboxd_capture.install('item', 'data', '{amount}', payload => '{no, id, amount, amount}', condition => 'n.amount > 0'),
    outboxd_capture.install('split', 'data', '{amount}')`)
  await pool.query(`insert into item values (1, 5); insert into split values (1, 5)`)
  expect(await written()).toEqual([
    { no: 1, amount: 5 },
    { id: 1, amount: 5 },
  ])

  // The superuser runs the new file, which hands everything over and prints what to do.
  await createRole(pool, 'outboxd_capture')
  await expect(pool.query(captureFile('install'))).rejects.toThrow('A superuser must not install change capture')
  await pool.query('rollback')
  await asInstaller(pool, captureFile('install'))
  await pool.query(
    `insert into item values (2, 6), (3, -1); update item set amount = 7 where id = 1; insert into split values (2, 6)`,
  )
  expect(await written()).toEqual([
    { no: 2, amount: 6 },
    { no: 1, amount: 7 },
    { id: 2, amount: 6 },
  ])
  const earlier = 'it was installed by an earlier version: install it again'
  expect(await trouble()).toMatchObject([
    { table_name: 'public.item', notes: '0', reason: earlier },
    { table_name: 'public.split', notes: '0', reason: earlier },
  ])
  // What the former trigger notes is not captured before that.
  await pool.query(
    `alter table outbox rename to away; insert into item values (4, 8); alter table away rename to outbox`,
  )
  const retry = () => asInstaller(pool, `select * from outboxd_capture.retry()`)
  expect((await retry()).rows).toMatchObject([{ erp_table: 'public.item', captured: 0, failed: 1, reason: earlier }])

  await asInstaller(pool, `select outboxd_capture.install('item', 'data', condition => 'n.amount > 0')`)
  expect((await retry()).rows).toMatchObject([{ erp_table: 'public.item', captured: 1, failed: 0 }])
  await pool.query(`update item set amount = 9 where id = 1; insert into split values (3, 6)`)
  expect(await written()).toEqual([
    { document: 'public.item', id: 4 },
    { document: 'public.item', id: 1 },
    { id: 3, amount: 6 },
  ])
  await asInstaller(pool, `select outboxd_capture.install('split', 'data')`)
  await pool.query(`insert into split_1 values (4, 6); update split set amount = 1 where id = 2`)
  expect(await written()).toEqual([
    { document: 'public.split', id: 4 },
    { document: 'public.split', id: 2 },
  ])
  expect(await trouble()).toEqual([])
  // Nothing of the former version is left: neither triggers nor functions, which PUBLIC could execute.
  const { rows } = await pool.query(`select proname from pg_proc where pronamespace = 'outboxd_capture'::regnamespace
    and (proname like 'capture%' or proname in ('key_names', 'pick', 'query') or has_function_privilege('pg_monitor', oid, 'execute'))`)
  expect(rows).toEqual([])
})

async function setup() {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(`create table item (id int primary key, amount int); create table split (id int primary key, amount int) partition by range (id);
    create table split_1 partition of split default`)
  const written = async () => {
    const { rows } = await pool.query(`select payload from outbox order by id`)
    await pool.query('truncate outbox')
    return rows.map(({ payload }) => payload)
  }
  const trouble = async () => (await pool.query('select * from outboxd_capture.trouble order by 1')).rows
  return { pool, written, trouble } satisfies { pool: pg.Pool; written: unknown; trouble: unknown }
}
