import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { command as adopt } from '../../../src/commands/adopt.ts'
import { command as recover } from '../../../src/commands/recover.ts'
import { testContext } from '../../support/context.ts'
import { eventually } from '../../support/eventually.ts'
import { backUpLedger, type LedgerBackup, restoreLedger } from '../../support/ledgerBackup.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { install } from '../installation.ts'

/** Only the ledger's rows are restored, so the ERP's rows are ahead of them. */

const mapping = readFileSync('mappings/data.yaml', 'utf8')
const payload = (field2: string) =>
  `{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "${field2}"}`

const sourceTable = `source (id bigint generated always as identity primary key, type text not null, key text,
  payload jsonb, created_at timestamptz default now(), tx text, done_at timestamptz)`

const undatedTable = `table: source\nid: id\nkey: key\ntype: type\npayload: payload\nstate: none
write: { tx: transaction_id, done_at: { what: now, on: [completed] } }\n`

/** A table of the ERP, its outbox.yaml, and the update by which a row loses its transaction. */
const kinds = {
  'a table with a status': { table: 'outbox', files: {}, forget: 'transaction_id = null' },
  'a table without a status, which names the transaction': {
    table: 'source',
    files: {
      'outbox.yaml': `${undatedTable}created_at: created_at\n`,
    },
    forget: 'tx = null',
  },
}

test.each([
  { as: 'new', dates: 'created_at: created_at\n', becomes: ['a completed', 'b completed'] },
  { as: 'uncertain', dates: '', becomes: ['a completed', 'b uncertain'] },
])('a backup from before the first record ($as): nothing is sent before `recover`', async ({ as, dates, becomes }) => {
  const table = 'source'
  const files = { 'outbox.yaml': `${undatedTable}${dates}` }
  const given = await install({ 'data.yaml': mapping, ...files })
  await given.pool.query(`create table ${sourceTable}`)
  const state = restorable(given.pool)
  const env = { DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir }
  const insert = (field2: string) =>
    given.pool.query(`insert into ${table} (type, payload) values ('data', $1)`, [payload(field2)])
  const arrived = async () => (await given.arrivals()).map((body) => JSON.parse(body).data.field2)
  await state.backUp()
  const stop = await given.startInstance()
  await insert('a')
  await until(
    () => given.pool.query(`select from ${table} where done_at is not null`),
    ({ rowCount }) => rowCount === 1,
  )
  await stop()

  await state.restore()
  // As after `migrate` beside a table that has been sent: the ledger's history says nothing.
  await given.pool.query('update outboxd.history set database_oid = database_oid')
  await insert('b')
  const early = testContext(env)
  expect(await recover.action(early, { as: 'new', by: 'erin', yes: true })).toBe(1)
  expect(early.messages()).toContain('no daemon has looked at it yet')
  await given.startInstance()
  await until(
    () => statusSays(env),
    (text) => text.includes('row 1 of the outbox names a transaction'),
  )
  expect(await arrived()).toEqual(['a'])
  expect(await recover.action(testContext(env), { as, by: 'erin', yes: true })).toBe(0)
  await given.pool.query('truncate outboxd.request; update outboxd.ledger set spent_at = null')
  await insert('c')
  await eventually(async () => expect(await readLedger(given.pool)).toEqual([...becomes, 'c completed']))
  expect(await arrived()).toEqual(as === 'new' ? ['a', 'b', 'c'] : ['a', 'c'])
})

test('a running daemon stops if rows with transactions appear under an empty ledger', async () => {
  const given = await install({ 'data.yaml': mapping, 'outbox.yaml': undatedTable })
  await given.pool.query(`create table ${sourceTable}`)
  await given.startInstance()
  await given.pool.query(`insert into source (type, payload, tx) values ('data', $1, null), ('data', $1, 'tx-old')`, [
    payload('a'),
  ])
  const env = { DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir }
  await until(
    () => statusSays(env),
    (text) => text.includes('row 2 of the outbox names a transaction'),
  )
  expect(await given.arrivals()).toEqual([])

  const adopting = testContext(env)
  expect(await adopt.action(adopting, { start: 'now', as: 'erin', yes: true })).toBe(0)
  expect(adopting.messages()).toContain(
    '2 rows are not captured yet. Those before the start position will never be sent.',
  )
  expect(await recover.action(testContext(env), { as: 'new', by: 'erin', yes: true })).toBe(0)
  await given.pool.query('truncate outboxd.request; update outboxd.ledger set spent_at = null')
  await given.pool.query(`insert into source (type, payload) values ('data', $1)`, [payload('b')])
  await eventually(async () => expect(await readLedger(given.pool)).toEqual(['b completed']))
  expect(await given.arrivals()).toHaveLength(1)
})

test.each(
  Object.entries(kinds),
)('any restore, and `--as new` (%s): no row with a transaction is sent', async (_, kind) => {
  const { table, files, forget } = kind
  const given = await install({ 'data.yaml': mapping, ...files })
  await given.pool.query(`create table ${sourceTable}`)
  const state = restorable(given.pool)
  const env = { DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir }
  const start = () => given.startInstance()
  const insert = (field2: string, key: string | null = null) =>
    given.pool.query(`insert into ${table} (type, key, payload) values ('data', $1, $2)`, [key, payload(field2)])
  const ledger = () => readLedger(given.pool)

  await given.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  let stop = await start()
  for (const [field2, key] of [['a', 'k'], ['b', 'k'], ['c'], ['d']] as const) await insert(field2, key)
  await eventually(async () => expect(await ledger()).toEqual(['a queued', 'b queued', 'c queued', 'd queued']))
  await stop()
  await state.backUp()
  await given.pool.query(`delete from outboxd.pause`)
  stop = await start()
  await insert('e')
  await eventually(async () =>
    expect(await ledger()).toEqual(['a completed', 'b completed', 'c completed', 'd completed', 'e completed']),
  )
  await until(
    () => given.pool.query('select from outboxd.submission where report_due'),
    ({ rowCount }) => rowCount === 0,
  )
  await stop()
  await given.pool.query(`update ${table} set ${forget} where payload ->> 'field2' = 'd'`)

  await state.restore()
  await given.pool.query(`delete from outboxd.pause`)
  await start()
  await until(
    () => statusSays(env),
    (text) => text.includes('outboxd recover'),
  )
  const context = testContext(env)
  expect(await recover.action(context, { as: 'new', by: 'erin', yes: true })).toBe(0)
  expect(context.messages()).toContain('Records that have arrived, now tracked: 3.')
  // The whole budget counts as spent for a minute and a half. The test frees it to be faster.
  await given.pool.query('truncate outboxd.request; update outboxd.ledger set spent_at = null')
  const known = ['a completed', 'b completed', 'c completed', 'd uncertain']
  // Row d was sent again under its own key, which the service knew.
  // A row that shows its end and is not in the ledger is left alone. A waiting row that names a transaction is
  // captured.
  await eventually(async () => expect(await ledger()).toEqual(table === 'outbox' ? known : [...known, 'e completed']))
  await insert('f')
  await eventually(async () => expect((await ledger()).at(-1)).toBe('f completed'))
  const arrived = (await given.arrivals()).map((body) => JSON.parse(body).data.field2)
  expect(arrived.toSorted()).toEqual(['a', 'b', 'c', 'd', 'd', 'e', 'f'])
})

test('rows that wait after a restore become uncertain', async () => {
  const given = await install({ 'data.yaml': mapping })
  const state = restorable(given.pool)
  const env = { DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir }
  const insert = (field2: string) =>
    given.pool.query(`insert into outbox (type, payload) values ('data', $1)`, [payload(field2)])
  const completes = (field2: string) =>
    until(
      () => given.pool.query(`select from outbox where status = 'completed' and payload ->> 'field2' = $1`, [field2]),
      ({ rowCount }) => rowCount === 1,
    )
  let stop = await given.startInstance()
  await insert('a')
  await completes('a')
  await stop()
  await insert('b')
  await state.backUp()
  stop = await given.startInstance()
  await completes('b')
  await stop()
  await state.restore()
  await given.pool.query(`update outbox set status = 'new', transaction_id = null where payload ->> 'field2' = 'b'`)
  await given.startInstance()
  await until(
    () => statusSays(env),
    (text) => text.includes('outboxd recover'),
  )
  expect(await recover.action(testContext(env), { as: 'uncertain', by: 'erin', yes: true })).toBe(0)
  await given.pool.query('truncate outboxd.request; update outboxd.ledger set spent_at = null')
  await eventually(async () => expect(await readLedger(given.pool)).toEqual(['a completed', 'b uncertain']))
  const arrived = (await given.arrivals()).map((body) => JSON.parse(body).data.field2)
  expect(arrived).toEqual(['a', 'b'])
})

async function readLedger(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ said: string }>(
    `select payload::json ->> 'field2' || ' ' || state as said from outboxd.submission order by 1`,
  )
  return rows.map(({ said }) => said)
}

function restorable(pool: pg.Pool) {
  let backup: LedgerBackup
  return {
    async backUp() {
      backup = await backUpLedger(pool)
    },
    restore: () => restoreLedger(pool, backup),
  }
}
