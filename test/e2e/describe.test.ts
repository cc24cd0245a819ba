import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command as describe } from '../../src/commands/describe.ts'
import { testContext } from '../support/context.ts'
import { exampleDdl } from '../support/exampleDdl.ts'
import { until } from '../support/until.ts'
import { type Installation, install } from './installation.ts'

/** A daemon sends a table's rows with the files that `outboxd describe --write` proposes, after they are filled in. */

const payload = (field2: string) =>
  `{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1234.5, "field2": "${field2}"}`

/**
 * Describes a table, fills in the open places, and runs a daemon with these files.
 *
 * @returns bodies that the service got
 */
async function sentBy(
  { url, mappingsDir, startInstance, pool, arrivals }: Installation,
  table: string,
  { completed, fillIn = [] }: { completed: number; fillIn?: [file: string, place: RegExp, text: string][] },
): Promise<string[]> {
  const context = testContext({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir })
  expect(await describe.action(context, table, { write: true })).toBe(0)
  expect(context.messages().match(/^to fill in: /gm) ?? []).toHaveLength(fillIn.length)
  for (const [file, place, text] of fillIn) {
    const before = await readFile(join(mappingsDir, file), 'utf8')
    expect(before).toMatch(place)
    await writeFile(join(mappingsDir, file), before.replace(place, text))
  }
  await startInstance()
  await until(
    async () => (await pool.query('select state, error from outboxd.submission')).rows,
    (rows) => rows.filter(({ state }) => state === 'completed').length === completed,
  )
  return arrivals()
}

const field2s = (bodies: readonly string[]) => bodies.map((body) => /"field2":"([^"]*)"/.exec(body)?.[1])

test('the standard table works with the proposed files', async () => {
  const installation = await install({})
  await installation.pool.query(`insert into outbox (type, payload) values ('data', '${payload('a')}')`)
  const bodies = await sentBy(installation, 'outbox', { completed: 1 })
  expect(bodies[0]).toContain('"total_amount":1234.50')
  await until(
    async () => (await installation.pool.query('select status, transaction_id from outbox')).rows[0],
    ({ status, transaction_id: id }) => status === 'completed' && id !== null,
  )
})

test('Debezium’s outbox works with the proposed files', async () => {
  const installation = await install({})
  await installation.pool.query(exampleDdl.debezium)
  for (const field2 of ['a', 'b'])
    await installation.pool.query(
      `insert into outbox values (gen_random_uuid(), 'data', 'C1', 'Changed', '${payload(field2)}')`,
    )
  expect(field2s(await sentBy(installation, 'outbox', { completed: 2 }))).toEqual(['a', 'b'])
})

test('MassTransit’s outbox works with the proposed files, which read fields in the envelope', async () => {
  const installation = await install({})
  await installation.pool.query(exampleDdl.masstransit)
  const type = 'urn:message:Erp:DataChanged'
  await installation.pool.query(
    `insert into "OutboxMessage" ("SentTime", "MessageId", "ContentType", "MessageType", "Body")
     values (now(), gen_random_uuid(), 'application/vnd.masstransit+json', $1, $2)`,
    [type, `{"messageId": "x", "messageType": ["${type}"], "message": ${payload('a')}}`],
  )
  expect(field2s(await sentBy(installation, 'OutboxMessage', { completed: 1 }))).toEqual(['a'])
})

test('Eventuate’s outbox works with the proposed files, which mark rows as published on capture', async () => {
  const installation = await install({})
  await installation.pool.query(exampleDdl.eventuate)
  await installation.pool.query(
    `insert into eventuate.message values ('0000018b-1', 'erp.data', '{}', $1, 0, 1, 1763629200123)`,
    [payload('a')],
  )
  expect(field2s(await sentBy(installation, 'eventuate.message', { completed: 1 }))).toEqual(['a'])
  const { rows } = await installation.pool.query('select published from eventuate.message')
  expect(rows).toEqual([{ published: 1 }])
  const { rows: recorded } = await installation.pool.query('select recorded_at from outboxd.submission')
  expect(recorded).toEqual([{ recorded_at: new Date(1_763_629_200_123) }])
})

test('pg-transactional-outbox works with the proposed files, and rows become processed or abandoned', async () => {
  const installation = await install({})
  const { pool } = installation
  await pool.query(exampleDdl.pgTransactionalOutbox)
  for (const field2 of ['a', 'fail:E001'])
    await pool.query(
      `insert into outbox (id, aggregate_type, aggregate_id, message_type, segment, payload)
       values (gen_random_uuid(), 'customer', 'C1', 'data_changed', 'C1', '${payload(field2)}')`,
    )
  expect(field2s(await sentBy(installation, 'outbox', { completed: 1 }))).toEqual(['a', 'fail:E001'])
  await until(
    async () =>
      (
        await pool.query(
          'select processed_at is not null as processed, abandoned_at is not null as abandoned from outbox order by created_at',
        )
      ).rows,
    ([first, second]) => first.processed && !first.abandoned && !second.processed && second.abandoned,
  )
})

test('a business table works with the proposed files after the filter is filled in', async () => {
  const installation = await install({})
  const { pool } = installation
  await pool.query(exampleDdl.salesOrder)
  await pool.query(`insert into sales_order (customer_no, status, net_amount, reference, ordered_at) values
    ('C1', 'released', 99999999.90, 'a', '2026-11-20 10:00:00.25+01'), ('C1', 'draft', 1, 'later', now())`)
  const bodies = await sentBy(installation, 'sales_order', {
    completed: 1,
    fillIn: [['outbox.yaml', /^filter:.*$/m, "filter: status = 'released'"]],
  })
  expect(field2s(bodies)).toEqual(['a'])
  expect(bodies[0]).toContain('"order_date":"2026-11-20T09:00:00.25')
  expect(bodies[0]).toContain('"total_amount":99999999.90')
  await until(
    async () =>
      (await pool.query('select reference, synced_at is not null as synced from sales_order order by id')).rows,
    ([first, second]) => first.synced && !second.synced,
  )
})

test('a table with quoted names, a composite key and times without zone works after two places are filled in', async () => {
  const installation = await install({})
  const { pool } = installation
  await pool.query(`create table "Sales Order" (
    "Company" int, "Order No" int, "Customer No" text not null, "Total" numeric(14,4) not null, "Ordered At" timestamp not null,
    "Reference" text not null, "Synced At" timestamptz, primary key ("Company", "Order No"))`)
  await pool.query(`alter table "Sales Order" add column "Outbox Id" bigint generated always as identity`)
  await pool.query(`insert into "Sales Order" values (1, 7, 'C1', 12.3400, '2026-11-20 10:00', 'a', null)`)
  await pool.query(`create unique index on "Sales Order" ("Outbox Id")`)
  const bodies = await sentBy(installation, 'Sales Order', {
    completed: 1,
    fillIn: [
      ['outbox.yaml', /^created_at:.*$/m, 'created_at: Ordered At'],
      ['Sales_Order.yaml', /timezone: "", (.*)$/m, 'timezone: Europe/Berlin, $1'],
    ],
  })
  expect(bodies[0]).toContain('"order_date":"2026-11-20T09:00:00')
  expect(bodies[0]).toContain('"total_amount":12.34')
})
