import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { asInstaller, captureFile, createRole } from '../../support/changeCapture.ts'
import { createDatabase } from '../../support/database.ts'

test('the statements of docs/start/change-capture.md replace change capture of 0.2 without losing a change', async () => {
  const { pool, written, trouble, move } = await setup()
  await pool.query(`insert into item values (1, 5); insert into split values (1, 5)`)
  expect(await written()).toEqual([
    { no: 1, amount: 5 },
    { id: 1, amount: 5 },
  ])

  // install.sql says what to do instead.
  await expect(asInstaller(pool, captureFile('install'))).rejects.toMatchObject({
    message: 'Change capture of outboxd 0.2 is installed.',
    hint: expect.stringContaining('Upgrading from 0.2'),
  })
  // A call that fails changes nothing.
  await expect(move(`select outboxd_capture.install('item', 'data', condition => 'n.amuont > 0')`)).rejects.toThrow(
    'n.amuont',
  )
  await pool.query(`insert into item values (2, 6)`)
  expect(await written()).toEqual([{ no: 2, amount: 6 }])

  const erp = await pool.connect()
  onTestFinished(() => erp.release(true))
  await erp.query(`begin; insert into item values (3, 7)`)
  const moved =
    move(`select outboxd_capture.install('item', 'data', '{amount}', payload => '{no, id, amount, amount}', condition => 'n.amount > 0'),
    outboxd_capture.install('split', 'split')`)
  await expect
    .poll(async () => (await pool.query(`select from pg_locks where not granted`)).rowCount)
    .toBeGreaterThan(0)
  await erp.query(`insert into item values (4, 8); commit`)
  await moved
  await pool.query(
    `insert into item values (5, 9); update item set amount = 1 where id = 3; insert into split_1 values (4, 6)`,
  )
  expect(await written()).toEqual([
    { no: 3, amount: 7 },
    { no: 4, amount: 8 },
    { document: 'public.item', id: 5 },
    { document: 'public.item', id: 3 },
    { document: 'public.split', id: 4 },
  ])
  expect(await trouble()).toEqual([])
  // PUBLIC could execute the functions of 0.2.
  const { rows } = await pool.query(`select proname from pg_proc where pronamespace = 'outboxd_capture'::regnamespace
    and (proname like 'capture%' or has_function_privilege('pg_monitor', oid, 'execute'))`)
  expect(rows).toEqual([])
})

/** A database in which a superuser installed change capture of 0.2, as its page said. */
async function setup() {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await createRole(pool, 'outboxd_capture')
  await pool.query(`create table item (id int primary key, amount int); create table split (id int primary key, amount int) partition by range (id);
    create table split_1 partition of split default`)
  await pool.query(readFileSync('test/daemon/capture/version-0.2.0/install.sql', 'utf8'))
  await pool.query(`select outboxd_capture.install('item', 'data', '{amount}', payload => '{no, id, amount, amount}', condition => 'n.amount > 0'),
    outboxd_capture.install('split', 'data', '{amount}')`)
  const written = async () => {
    const { rows } = await pool.query(`select payload from outbox order by id`)
    await pool.query('truncate outbox')
    return rows.map(({ payload }) => payload)
  }
  const trouble = async () => (await pool.query('select * from outboxd_capture.trouble order by 1')).rows
  /** Runs the page's psql command, as one transaction, with these calls of install. */
  const move = async (calls: string) => {
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    const page = readFileSync('docs/start/change-capture.md', 'utf8')
    const [, command = ''] = /```sh\n(psql -1 [^`]*remove\.sql[^`]*)```/.exec(page) ?? []
    const steps = [...command.matchAll(/-f (\S+)|-c "([^"]*)"/g)].map(([, file, sql]) => {
      if (file === 'remove.sql' || file === 'install.sql')
        return captureFile(file === 'remove.sql' ? 'remove' : 'install')
      return (
        sql
          ?.replace('create role outboxd_capture;', '')
          .replaceAll('sales_order, sales_line', 'item, split, split_1') ?? calls
      )
    })
    return client.query(steps.join(';\n'))
  }
  return { pool, written, trouble, move }
}
