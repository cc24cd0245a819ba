import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  assertSchemaComplete,
  findMissingOrBrokenSchemaParts,
  findSequencesBehindTables,
  migrateLedger,
  readSchemaParts,
} from '../../src/ledger/migrations.ts'
import { beginTransaction } from '../../src/postgres/database.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'
import { createDatabaseOn, debian15, openPool, startPostgres } from '../support/postgres.ts'

/** The parts of the schema are those that the migrations make: `npm test -- test/ledger/structure -u` writes them to migrations/structure.json. */

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())

test('migrations/structure.json lists the parts that the migrations make', async () => {
  const found = await readSchemaParts(ledger.pool)
  const parts = found.map(({ mendedBy: _, ...part }) => part)
  await expect(`${JSON.stringify(parts, null, 2)}\n`).toMatchFileSnapshot('../../migrations/structure.json')
  expect(parts.map(({ name }) => name)).toContain('constraint clock_pkey of clock')
})

test.runIf(existsSync(debian15))('PostgreSQL 15 has the same parts', async () => {
  await using server = await startPostgres({ fsync: 'off' }, debian15)
  const url = await createDatabaseOn(server.url, 'ledger')
  await migrateLedger(url)
  const pool = openPool(url)
  expect(await findMissingOrBrokenSchemaParts(pool)).toEqual([])
  await pool.end()
})

test('each part that was dropped is reported as missing, and its statement makes it again', async () => {
  for (const { name } of await readSchemaParts(ledger.pool)) {
    const [kind = '', part = '', , table = ''] = name.split(' ')
    await using transaction = await beginTransaction(ledger.pool)
    const { db } = transaction
    await db.query(dropping(kind, part, table))
    const missing = await findMissingOrBrokenSchemaParts(db)
    expect(missing.map((each) => each.name)).toContain(name)
    for (const { sql } of missing) await db.query(sql)
    expect(await findMissingOrBrokenSchemaParts(db)).toEqual([])
  }
})

function dropping(kind: string, part: string, table: string): string {
  if (kind === 'index') return `drop index outboxd.${part}`
  if (kind === 'trigger') return `drop trigger ${part} on outboxd.${table}`
  return `alter table outboxd.${table} drop constraint ${part} cascade`
}

test.each([
  [
    'a trigger that is disabled',
    'alter table outboxd.submission disable trigger only_ended',
    'trigger only_ended of submission',
  ],
  [
    'an index that was not built to its end',
    `update pg_index set indisvalid = false where indexrelid = 'outboxd.submission_idempotency_key'::regclass`,
    'index submission_idempotency_key of submission',
  ],
  [
    'a constraint that is not validated',
    `alter table outboxd.submission drop constraint submission_state_check,
       add constraint submission_state_check check (state <> '') not valid`,
    'constraint submission_state_check of submission',
  ],
])('%s is reported, and its statement repairs it', async (_, statement, name) => {
  await using transaction = await beginTransaction(ledger.pool)
  const { db } = transaction
  await db.query(statement)
  const missing = await findMissingOrBrokenSchemaParts(db)
  expect(missing.map((each) => each.name)).toEqual([name])
  for (const { sql } of missing) await db.query(sql)
  expect(await findMissingOrBrokenSchemaParts(db)).toEqual([])
})

test('sequences that start anew, as after logical replication, are reported and set to where they were', async () => {
  await ledger.capture([{}, {}])
  await ledger.pool.query(
    `select setval('outboxd.submission_event_id_seq', 1, false), setval('outboxd.submission_seq_seq', 1, false)`,
  )
  const missing = await findSequencesBehindTables(ledger.pool)
  expect(missing.map(({ name }) => name)).toContain('position of the sequence of submission.seq')
  for (const { sql } of missing) await ledger.pool.query(sql)
  expect(await findSequencesBehindTables(ledger.pool)).toEqual([])
  await ledger.capture([{}])
  expect((await ledger.pool.query('select max(seq)::int as last from outboxd.submission')).rows).toEqual([{ last: 3 }])
})

test('a daemon starts without an index for speed, and not without a constraint that prevents double sending', async () => {
  await using transaction = await beginTransaction(ledger.pool)
  const { db } = transaction
  await db.query('drop index outboxd.submission_report')
  await assertSchemaComplete(db, ledger.url)
  await db.query('alter table outboxd.submission drop constraint submission_outbox_row')
  await expect(assertSchemaComplete(db, ledger.url)).rejects.toThrow(
    'its schema outboxd lacks constraint submission_outbox_row of submission. It was restored in part',
  )
})
