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

type FillIn = [file: string, place: RegExp, text: string]

/**
 * Describes a table, fills in the open places, and runs a daemon with these files.
 *
 * @returns bodies that the service got
 */
async function sentBy(
  { url, mappingsDir, startInstance, pool, arrivals }: Installation,
  table: string,
  { completed, fillIn = [], places = fillIn.length }: { completed: number; fillIn?: FillIn[]; places?: number },
): Promise<string[]> {
  const context = testContext({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir })
  expect(await describe.action(context, table, { write: true })).toBe(0)
  expect(context.messages().match(/^to fill in: /gm) ?? []).toHaveLength(places)
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

const beginning: FillIn = ['outbox.yaml', /^start: FILL_IN.*/m, 'start: beginning']

const fieldsOfPayload = (file: string, path = ''): FillIn[] => [
  [file, /(customer_id: { from: )FILL_IN/, `$1${path}customerId`],
  [file, /(order_date: { from: )FILL_IN/, `$1${path}orderDate`],
  [file, /(total_amount: { from: )FILL_IN/, `$1${path}amount`],
  [file, /field1: { from: FILL_IN, required: true/, 'field1: { constant: value1'],
  [file, /(field2: { from: )FILL_IN/, `$1${path}field2`],
]

test('the table of `migrate --outbox` works with the proposed mapping file', async () => {
  const installation = await install({})
  await installation.pool.query(`insert into outbox (type, payload) values ('data', '${payload('a')}')`)
  const bodies = await sentBy(installation, 'outbox', {
    completed: 1,
    fillIn: [['outbox-record.yaml', /^type: FILL_IN.*/m, 'type: data'], ...fieldsOfPayload('outbox-record.yaml')],
  })
  expect(bodies[0]).toContain('"total_amount":1234.50')
  await until(
    async () => (await installation.pool.query('select status, transaction_id from outbox')).rows[0],
    ({ status, transaction_id: id }) => status === 'completed' && id !== null,
  )
})

test('Debezium’s outbox works with the proposed files, once the rest is filled in', async () => {
  const installation = await install({})
  await installation.pool.query(exampleDdl.debezium)
  for (const field2 of ['a', 'b'])
    await installation.pool.query(
      `insert into outbox values (gen_random_uuid(), 'data', 'C1', 'Changed', '${payload(field2)}')`,
    )
  const bodies = await sentBy(installation, 'outbox', {
    completed: 2,
    fillIn: [
      ['outbox.yaml', /^type: FILL_IN.*/m, 'type: aggregatetype'],
      ['outbox.yaml', /^payload: FILL_IN.*/m, 'payload: payload'],
      ['outbox.yaml', /^filter: FILL_IN.*\n/m, ''],
      ['outbox.yaml', /^state: FILL_IN.*/m, 'state: none\nsequence: seq'],
      beginning,
      ['outbox-record.yaml', /^type: FILL_IN.*/m, 'type: data'],
      ...fieldsOfPayload('outbox-record.yaml'),
    ],
  })
  expect(field2s(bodies).sort()).toEqual(['a', 'b'])
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
  const bodies = await sentBy(installation, 'OutboxMessage', {
    completed: 1,
    fillIn: [
      ['outbox.yaml', /^created_at: FILL_IN.*/m, 'created_at: SentTime'],
      ['outbox.yaml', /^type: FILL_IN.*/m, 'type: MessageType'],
      ['outbox.yaml', /^payload: FILL_IN.*/m, 'payload: Body'],
      ['outbox.yaml', /^filter: FILL_IN.*\n/m, ''],
      ['outbox.yaml', /^state: FILL_IN.*/m, 'state: none\nsequence: SequenceNumber'],
      beginning,
      ['OutboxMessage.yaml', /^type: FILL_IN.*/m, `type: ${type}`],
      ...fieldsOfPayload('OutboxMessage.yaml', 'message.'),
    ],
  })
  expect(field2s(bodies)).toEqual(['a'])
})

test('a business table works with the proposed files, once the rest is filled in', async () => {
  const installation = await install({})
  const { pool } = installation
  await pool.query(exampleDdl.salesOrder)
  await pool.query(`insert into sales_order (customer_no, status, net_amount, reference, ordered_at) values
    ('C1', 'released', 99999999.90, 'a', '2026-11-20 10:00:00.25+01'), ('C1', 'draft', 1, 'later', now())`)
  const bodies = await sentBy(installation, 'sales_order', {
    completed: 1,
    fillIn: [
      ['outbox.yaml', /^filter: FILL_IN.*/m, "filter: status = 'released'"],
      ['outbox.yaml', /^state: FILL_IN.*/m, 'state: { timestamp: synced_at, set: [completed] }'],
      beginning,
      ['sales_order.yaml', /(customer_id: { from: )FILL_IN/, '$1customer_no'],
      ['sales_order.yaml', /(order_date: { from: )FILL_IN/, '$1ordered_at'],
      ['sales_order.yaml', /(total_amount: { from: )FILL_IN/, '$1net_amount'],
      ['sales_order.yaml', /field1: { from: FILL_IN, required: true/, 'field1: { constant: value1'],
      ['sales_order.yaml', /(field2: { from: )FILL_IN/, '$1reference'],
    ],
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

test('a header with lines and the customer in other tables works, once the query is filled in from its candidates', async () => {
  const installation = await install({})
  const { pool } = installation
  await pool.query(`create table "Customer" (tenant int, no int, uuid uuid, primary key (tenant, no));
    create table "Order" (id uuid primary key default gen_random_uuid(), tenant int, customer int, sent boolean not null default false,
      made timestamptz not null default now(), foreign key (tenant, customer) references "Customer");
    create table "Line" (no int generated always as identity primary key, "order" uuid references "Order", article text, deleted boolean);
    insert into "Customer" values (1, 7, '7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11');
    with o as (insert into "Order" (tenant, customer) values (1, 7) returning id)
    insert into "Line" ("order", article, deleted) select id, article, article = 'x' from o, unnest(array['a', 'x', 'b']) article`)
  const bodies = await sentBy(installation, 'Order', {
    completed: 1,
    fillIn: [
      ['outbox.yaml', /^filter: FILL_IN.*\n/m, ''],
      ['outbox.yaml', /^state: FILL_IN.*/m, 'state: { flag: sent, new: false, set: [queued] }'],
      beginning,
      [
        'Order.yaml',
        /FILL_IN as items.*\n {4}-- (\(select.*'NAME', l\.)FILL_IN(.*)\n {4}-- (.*)FILL_IN\)/,
        '$1article$2 $3not deleted) as items',
      ],
      ['Order.yaml', /h\.\*,/, 'h.*, r1.uuid as "customerId",'],
      ['Order.yaml', /-- left join/, 'left join'],
      ['Order.yaml', /from: FILL_IN/, 'from: customerId'],
    ],
    places: 5,
  })
  expect(bodies).toEqual(['{"customerId":"7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11","items":[{"NAME":"a"},{"NAME":"b"}]}'])
})
