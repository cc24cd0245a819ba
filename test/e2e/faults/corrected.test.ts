import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { command as audit } from '../../../src/commands/audit.ts'
import { command as replay } from '../../../src/commands/replay.ts'
import { readLedgerSnapshot } from '../../../src/ledger/snapshot.ts'
import { testContext } from '../../support/context.ts'
import { eventually } from '../../support/eventually.ts'
import { runStatus } from '../../support/statusSays.ts'
import { install } from '../installation.ts'

/** A row of the ERP is changed by hand, which is the repair that outboxd asks for. */

const mapping = readFileSync('mappings/data.yaml', 'utf8')
const described = `
table: sales_order
id: id
type: { constant: data }
key: customer
payload: { columns: { customerId: customer, orderDate: ordered_at, amount: amount, field2: reference } }
state: { timestamp: synced_at, set: [completed] }
write: { sync_error: error }
start: beginning`
const ddl = `create table sales_order (id bigint generated always as identity primary key, customer text, amount numeric,
  reference text default 'PO', ordered_at timestamptz default now(), synced_at timestamptz, sync_error text)`

test('the ERP corrects a rejected row without `created_at`: sent once', async () => {
  const given = await install({ 'data.yaml': mapping, 'outbox.yaml': described })
  const { pool, url, mappingsDir } = given
  await pool.query(ddl)
  await pool.query(`insert into sales_order (customer, amount) values ('WRONG', 123456789)`)
  await given.startInstance()
  const rows = async () =>
    (await pool.query('select synced_at is not null as synced, sync_error from sales_order order by id')).rows
  await eventually(async () => expect(await rows()).toMatchObject([{ synced: false, sync_error: expect.any(String) }]))
  await pool.query(`update sales_order set customer = 'C1', amount = 12.30 where id = 1`)
  // A row after the corrected one. Once it has been sent, the daemon has read both.
  await pool.query(`insert into sales_order (customer, amount) values ('C2', 1)`)
  await eventually(async () => expect((await rows())[1]).toMatchObject({ synced: true }))
  expect((await readLedgerSnapshot(pool)).problems).toEqual({})
  const open = () => testContext({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir })
  const { context } = await runStatus(open)
  expect(context.printed()).toContain('1 record needs attention')
  expect(context.printed() + context.messages()).not.toMatch(/never used|another row|differs/)
  expect(await replay.action(open(), ['outbox:1'], { refresh: true, yes: true })).toBe(0)
  await eventually(async () => expect((await rows())[0]).toEqual({ synced: true, sync_error: null }))
  const bodies = await given.arrivals()
  expect(bodies.map((body) => /"customerId":"(\w+)"/.exec(body)?.[1]).toSorted()).toEqual(['C1', 'C2'])
  for (const [key, code] of [
    ['C1', 0],
    ['WRONG', 3],
  ] as const) {
    expect(await audit.action(open(), { key })).toBe(code)
  }
})
