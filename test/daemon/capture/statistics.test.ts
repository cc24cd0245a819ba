import { expect, test } from 'vitest'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { createPool } from '../../../src/postgres/database.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { tableOf } from '../../outbox/setup.ts'
import { tableForms } from '../../outbox/tableForms.ts'
import { openLedger } from '../../support/ledger.ts'
import { openCapture } from './setupCapture.ts'

const fields = 'fields: { v: { from: v, type: integer } }\nbody: { v: "${v}" }'
const mappings = new Map([['data', mappingFrom(`type: data\nendpoint: data\n${fields}`)]])

/** The most rows of the table and of the ledger that the capture of one row may read. */
const readsMax = 120

test.each(
  Object.entries(tableForms),
)('%s: 5,000 rows of 500 keys are captured in their order, at a cost that does not depend on statistics', async (_, {
  ddl,
  yaml,
}) => {
  await using ledger = await openLedger()
  const { pool } = ledger
  await pool.query(ddl)
  await pool.query(
    'alter table outboxd.submission set (autovacuum_enabled = false); alter table source set (autovacuum_enabled = false)',
  )
  await pool.query('analyze source, outboxd.submission, outboxd.problem')
  await pool.query(`insert into source (type, key) select 'data', 'k' || n % 500 from generate_series(1, 5000) n`)
  const countReads = async () => {
    const { rows } = await pool.query<{ reads: number }>(
      `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as reads from pg_stat_all_tables
       where relid = any('{source,outboxd.submission}'::regclass[])`,
    )
    return rows[0]?.reads ?? 0
  }
  const before = await countReads()
  // A session reports what it read at its end.
  const sessions = createPool({ url: ledger.url, name: 'test', connections: 3, isErp: true })
  const outbox = new Outbox(sessions, tableOf(yaml), 1_000, pool)
  const { captureAll } = await openCapture(pool, { mappings, outbox, captureWindow: 50_000 })
  await captureAll()
  await sessions.end()
  const { rows } = await pool.query<{ id: number }>('select outbox_id::int as id from outboxd.submission order by seq')
  expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: 5_000 }, (_, i) => i + 1))
  await expect.poll(async () => (await countReads()) - before).toBeGreaterThan(5_000)
  expect(((await countReads()) - before) / 5_000).toBeLessThan(readsMax)
})
