import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { command as list } from '../../../src/commands/list.ts'
import { readLedgerSnapshot } from '../../../src/ledger/snapshot.ts'
import { testContext } from '../../support/context.ts'
import { eventually } from '../../support/eventually.ts'
import { statusSays } from '../../support/statusSays.ts'
import { install } from '../installation.ts'

const outbox = `
table: source
id: id
type: { constant: data }
payload: payload
state: { timestamp: done_at, set: [completed] }
filter: (note::int) > 0
`
const payload = '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "x"}'

test('the filter fails for one row: `row_skipped`', async () => {
  const given = await install({ 'data.yaml': readFileSync('mappings/data.yaml', 'utf8'), 'outbox.yaml': outbox })
  const { pool } = given
  await pool.query('create table source (id bigint primary key, payload jsonb, note text, done_at timestamptz)')
  const insert = (id: number, note: string) =>
    pool.query('insert into source (id, payload, note) values ($1, $2, $3)', [id, payload, note])
  await given.startInstance()
  await insert(1, '1')
  await insert(2, 'x')
  await insert(3, '1')
  const arrive = (count: number) => eventually(async () => expect(await given.arrivals()).toHaveLength(count))
  await arrive(2)
  await eventually(async () => expect((await readLedgerSnapshot(pool)).problems).toEqual({ row_skipped: 1 }))
  const env = { DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir }
  const says = await statusSays(env)
  expect(says).toContain('The daemon skips 1 row of the outbox')
  expect(says).not.toContain('All is well')
  const names = testContext(env)
  await list.action(names, {})
  expect(names.messages()).toMatch(/outbox:2 is skipped.*the filter in outbox.yaml raises an error for this row/)
  await pool.query(`update source set note = '1' where id = 2`)
  await arrive(3)
  await eventually(async () => expect((await readLedgerSnapshot(pool)).problems).toEqual({}))
})
