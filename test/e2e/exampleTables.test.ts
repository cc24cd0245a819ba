import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findOutboxTableProblems } from '../../src/outbox/findOutboxTableProblems.ts'
import { loadOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { eventually } from '../support/eventually.ts'
import { exampleDdl } from '../support/exampleDdl.ts'
import { type Installation, install } from './installation.ts'

/** Each shipped example with the DDL of its table, and the sandbox as the service. */

const mapping = readFileSync('mappings/data.yaml', 'utf8')
const payload = (field2: string, amount = '1234.50') =>
  `{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": ${amount}, "field2": "${field2}"}`

test('Debezium: rows with an added sequence column are sent once, in its order, and not changed', async () => {
  const { pool, startInstance, arrivals } = await installExample('debezium')
  await pool.query(exampleDdl.debezium)
  const insert = (field2: string) =>
    pool.query(
      `insert into outbox values (gen_random_uuid(), 'data', 'C1', 'Changed', '${payload(field2, '1234.5')}'::jsonb)`,
    )
  for (const field2 of ['a', 'b', 'c', 'd']) await insert(field2)
  await pool.query(`insert into outbox values (gen_random_uuid(), 'data', 'C2', 'Changed', null)`)
  const before = await pool.query('select *, xmin from outbox order by id')
  await startInstance()
  await states(pool, { completed: 4, rejected: 1 })
  await insert('e')
  await states(pool, { completed: 5, rejected: 1 })
  expect(field2s(await arrivals())).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect((await arrivals())[0]).toContain('"total_amount":1234.50')
  const after = await pool.query(
    `select *, xmin from outbox where payload ->> 'field2' is distinct from 'e' order by id`,
  )
  expect(after.rows).toEqual(before.rows)
  expect(await rejections(pool)).toEqual(['the payload is missing: it is NULL in the outbox'])
})

test('MassTransit: envelopes of the named types are sent once, and not changed', async () => {
  const { pool, startInstance, arrivals } = await installExample('masstransit', {
    mapping: mapping.replaceAll(/from: (\w+)/g, 'from: message.$1'),
  })
  await pool.query(exampleDdl.masstransit)
  const insert = (type: string, message: string) =>
    pool.query(
      `insert into "OutboxMessage" ("SentTime", "OutboxId", "MessageId", "ContentType", "MessageType", "Body", "ConversationId")
       values ('2026-11-20 10:00+01', gen_random_uuid(), gen_random_uuid(), 'application/vnd.masstransit+json', $1, $2,
         '00000000-0000-0000-0000-000000000001')`,
      [type, `{"messageId": "x", "messageType": ["${type}"], "message": ${message}}`],
    )
  await insert('urn:message:Erp:DataChanged', payload('a'))
  await insert('urn:message:Shop:Other', payload('not ours'))
  await insert('urn:message:Erp:DataChanged', payload('b'))
  await insert('urn:message:Erp:Unknown', '{}')
  const before = await pool.query('select *, xmin from "OutboxMessage" order by 1')
  await startInstance()
  await states(pool, { completed: 2, rejected: 1 })
  expect(field2s(await arrivals())).toEqual(['a', 'b'])
  expect((await pool.query('select *, xmin from "OutboxMessage" order by 1')).rows).toEqual(before.rows)
  const { rows } = await pool.query(`select distinct recorded_at from outboxd.submission`)
  expect(rows).toEqual([{ recorded_at: new Date('2026-11-20T09:00:00Z') }])
  await eventually(async () => {
    const { rows } = await pool.query('select position from outboxd.outbox_cursor')
    expect(rows[0]?.position[0]).toBe('4')
  })
})

test('Eventuate: messages are sent once, and marked as published on capture', async () => {
  const { pool, startInstance, arrivals } = await installExample('eventuate')
  await pool.query(exampleDdl.eventuate)
  const insert = (id: string, destination: string, text: string, published: number | null = 0) =>
    pool.query(`insert into eventuate.message values ($1, $2, '{}', $3, $4, 1, 1763629200123)`, [
      id,
      destination,
      text,
      published,
    ])
  await insert('0000018b-2', 'erp.data', payload('b'))
  await insert('0000018b-1', 'erp.data', payload('a'))
  await insert('0000018b-3', 'erp.data', payload('c'), null)
  await insert('0000018b-4', 'erp.data', payload('sent before'), 1)
  await insert('0000018b-5', 'other', payload('not ours'))
  await insert('0000018b-6', 'erp.data', 'this is no JSON')
  await startInstance()
  await states(pool, { completed: 3, rejected: 1 })
  expect(field2s(await arrivals())).toEqual(['a', 'b', 'c'])
  const { rows } = await pool.query('select id, published from eventuate.message order by id')
  expect(rows.map(({ published }) => published)).toEqual([1, 1, 1, 1, 0, 1])
  const { rows: recorded } = await pool.query(`select distinct recorded_at from outboxd.submission`)
  expect(recorded).toEqual([{ recorded_at: new Date(1_763_629_200_123) }])
})

test('pg-transactional-outbox: completed rows are processed, failed and rejected ones abandoned', async () => {
  const { pool, startInstance, arrivals } = await installExample('pg-transactional-outbox')
  await pool.query(exampleDdl.pgTransactionalOutbox)
  const insert = (field2: string, amount?: string) =>
    pool.query(
      `insert into outbox (id, aggregate_type, aggregate_id, message_type, segment, payload)
       values (gen_random_uuid(), 'customer', 'C1', 'data_changed', 'C1', '${payload(field2, amount)}')`,
    )
  await insert('a')
  await insert('fail:E001')
  await insert('c', '0.001')
  await insert('d')
  await pool.query(`insert into outbox (id, aggregate_type, aggregate_id, message_type, payload, processed_at)
    values (gen_random_uuid(), 'customer', 'C1', 'data_changed', '{}', now())`)
  await startInstance()
  await states(pool, { completed: 2, failed: 1, rejected: 1 })
  expect(field2s(await arrivals())).toEqual(['a', 'd', 'fail:E001'])
  await eventually(async () => {
    const { rows } = await pool.query(`select payload ->> 'field2' as field2, processed_at is not null as processed,
      abandoned_at is not null as abandoned from outbox where payload <> '{}' order by created_at`)
    expect(rows).toEqual([
      { field2: 'a', processed: true, abandoned: false },
      { field2: 'fail:E001', processed: false, abandoned: true },
      { field2: 'c', processed: false, abandoned: true },
      { field2: 'd', processed: true, abandoned: false },
    ])
  })
})

test('sales_order: released orders are sent once with exact amounts, and get their end time or error', async () => {
  const { pool, startInstance, arrivals } = await installExample('sales_order')
  await pool.query(exampleDdl.salesOrder)
  await pool.query(`insert into sales_order (customer_no, status, net_amount, reference, ordered_at, synced_at) values
    ('C1', 'released', 99999999.90, 'a', '2026-11-20 10:00:00.25+01', null),
    ('C1', 'draft', 1, 'later', '2026-11-20 10:00+01', null),
    ('C1', 'released', 1, 'before', '2026-11-20 10:00+01', now()),
    ('C1', 'released', 1, 'fail:E001', '2026-11-20 10:00+01', null),
    ('C1', 'released', 100000000.00, 'too much', '2026-11-20 10:00+01', null),
    ('C1', 'released', 2.00, 'b', '2026-11-20 10:00+01', null)`)
  await startInstance()
  await states(pool, { completed: 2, failed: 1, rejected: 1 })
  expect(field2s(await arrivals())).toEqual(['a', 'b', 'fail:E001'])
  expect((await arrivals())[0]).toContain('"order_date":"2026-11-20T09:00:00.25')
  expect((await arrivals())[0]).toContain('"total_amount":99999999.90')
  await eventually(async () => {
    const { rows } = await pool.query(
      `select reference, synced_at is not null as synced, sync_error from sales_order order by id`,
    )
    expect(rows).toEqual([
      { reference: 'a', synced: true, sync_error: null },
      { reference: 'later', synced: false, sync_error: null },
      { reference: 'before', synced: true, sync_error: null },
      { reference: 'fail:E001', synced: false, sync_error: expect.any(String) },
      { reference: 'too much', synced: false, sync_error: 'total_amount (from a' },
      { reference: 'b', synced: true, sync_error: null },
    ])
  })
  await pool.query(`update sales_order set status = 'released' where reference = 'later'`)
  await states(pool, { completed: 3, failed: 1, rejected: 1 })
  expect(field2s(await arrivals())).toEqual(['a', 'b', 'fail:E001', 'later'])
})

test('partner_view: only the partner’s rows of the standard table are sent and written to', async () => {
  const { pool, startInstance, arrivals } = await installExample('partner_view')
  await pool.query(`alter table outbox add column partner text;
    create view outbox_a as select * from outbox where partner = 'a'`)
  const insert = (partner: string, field2: string) =>
    pool.query(`insert into outbox (type, payload, partner) values ('data', $1, $2)`, [payload(field2), partner])
  await insert('a', 'first')
  await insert('b', 'not ours')
  await insert('a', 'fail:E001')
  await startInstance()
  await states(pool, { completed: 1, failed: 1 })
  expect(field2s(await arrivals())).toEqual(['fail:E001', 'first'])
  await eventually(async () => {
    const { rows } = await pool.query(
      `select status, transaction_id is not null as named, error_code from outbox order by id`,
    )
    expect(rows).toEqual([
      { status: 'completed', named: true, error_code: null },
      { status: 'new', named: false, error_code: null },
      { status: 'failed', named: true, error_code: 'E001' },
    ])
  })
})

async function installExample(name: string, files: { mapping: string } = { mapping }): Promise<Installation> {
  const example = readFileSync(`mappings/examples/${name}.yaml`, 'utf8')
  const installation = await install({ 'data.yaml': files.mapping, 'outbox.yaml': `${example}start: beginning\n` })
  const { pool, mappingsDir, startInstance } = installation
  return {
    ...installation,
    async startInstance(env) {
      const table = loadOutboxFile(mappingsDir)
      expect(table && (await findOutboxTableProblems(pool, table))).toEqual([])
      return startInstance(env)
    },
  }
}

async function states(pool: Installation['pool'], wanted: Record<string, number>): Promise<void> {
  await eventually(async () => {
    const { rows } = await pool.query('select state, count(*)::int as n from outboxd.submission group by 1 order by 1')
    expect(Object.fromEntries(rows.map(({ state, n }) => [state, n]))).toEqual(wanted)
  })
}

/** Sorted, because records without a key arrive in any order. */
function field2s(bodies: readonly string[]): string[] {
  return bodies.map((body) => /"field2":"([^"]*)"/.exec(body)?.[1] ?? '').toSorted()
}

async function rejections(pool: Installation['pool']): Promise<string[]> {
  const { rows } = await pool.query<{ error: string }>(`select error from outboxd.submission where state = 'rejected'`)
  return rows.map(({ error }) => error)
}
