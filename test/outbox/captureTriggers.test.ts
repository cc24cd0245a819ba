import { expect, onTestFinished, test } from 'vitest'
import { captureFunctionName, findCaptureProblems } from '../../src/outbox/captureTriggers.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mappingFrom } from '../mapping/mappingOf.ts'
import { captureDocuments, createRole } from '../support/changeCapture.ts'
import { createDatabase } from '../support/database.ts'

/** Mappings of these types, each for the documents of the table `sale`. */
const saleMappings = (...types: string[]) =>
  new Map(
    types.map((type) => [
      type,
      mappingFrom(`type: ${type}
endpoint: orders
document: { table: sale, key: id }
source: select id from sale where id = any($1)
fields: {}
body: { a: b }`),
    ]),
  )

test('reports a document without a trigger, a disabled trigger, and roles whose statements the trigger fails', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query('create table sale (id int primary key); create table line (sale int references sale)')
  const outbox = new Outbox(pool, 'outbox', 1_000, pool)
  const problems = () => findCaptureProblems(outbox, saleMappings('order'))
  expect(await problems()).toEqual([
    'no trigger captures the changes of sale, the documents of type "order": `outboxd describe --capture` writes one',
  ])
  await captureDocuments(pool, 'sale', { type: 'order', children: ['line(sale)'] })
  expect(await problems()).toEqual([])
  await createRole(pool, 'erp_of_check')
  await pool.query('grant delete on line to erp_of_check; alter table line disable trigger outboxd_capture_order')
  expect(await problems()).toEqual([
    'changes are not captured: alter table public.line enable trigger outboxd_capture_order',
    'the trigger fails statements of erp_of_check: grant insert on "public"."outbox" to erp_of_check',
  ])
  await pool.query(
    'alter table line enable always trigger outboxd_capture_order; grant insert on outbox to erp_of_check',
  )
  expect(await problems()).toEqual([])
})

test('two outboxes: the trigger of one is not replaced by that of the other, and does not count for it', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await migrateOutbox(database.url, 'outbox_b')
  await pool.query('create table sale (id int primary key)')
  const problems = (table: string, type: string) =>
    findCaptureProblems(new Outbox(pool, table, 1_000, pool), saleMappings(type))
  await captureDocuments(pool, 'sale', { type: 'order' })
  await captureDocuments(pool, 'sale', { type: 'order' }) // the same outbox: it is renewed
  await expect(captureDocuments(pool, 'sale', { type: 'order', outbox: 'outbox_b' })).rejects.toThrow(
    'the function public.outboxd_capture_order captures for the outbox outbox, and the new one would replace it',
  )
  expect(await problems('outbox_b', 'order')).toEqual([
    expect.stringContaining('no trigger captures the changes of sale'),
  ])
  await captureDocuments(pool, 'sale', { type: 'order_b', outbox: 'outbox_b' })
  expect(await problems('outbox_b', 'order_b')).toEqual([])
  expect(await problems('outbox', 'order')).toEqual([])
  await pool.query('insert into sale values (7)')
  const { rows } = await pool.query(
    'select type, key from outbox union all select type, key from outbox_b order by type',
  )
  expect(rows).toEqual([
    { type: 'order', key: '7' },
    { type: 'order_b', key: '7' },
  ])
})

test('each type has a function of its own, whose name fits, and which `check` tells from that of another type', async () => {
  const long = 'a'.repeat(60)
  const types = ['total', 'Total', 'to-tal', 'to_tal', 'итог', 'сумма', long, `${long}b`]
  const names = types.map(captureFunctionName)
  expect(new Set(names).size).toBe(types.length)
  expect(names.filter((name) => Buffer.byteLength(`${name}_all`) > 63)).toEqual([])

  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query('create table sale (id int primary key)')
  await captureDocuments(pool, 'sale', { type: 'order' })
  expect(await findCaptureProblems(new Outbox(pool, 'outbox', 1_000, pool), saleMappings('order', 'total'))).toEqual([
    expect.stringContaining('no trigger captures the changes of sale, the documents of type "total"'),
  ])
})
