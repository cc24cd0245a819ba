import { expect, onTestFinished, test } from 'vitest'
import { readAuditEntries } from '../../../src/ledger/audit/readAuditEntries.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { createDatabase } from '../../support/database.ts'

test('the records of the last hour are read without those of the year before (1.1 s of two million)', async () => {
  const { pool, ...database } = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await pool.query(
    `insert into outboxd.submission (id, outbox_id, type, resource, payload, body, recorded_at, state, idempotency_key, ended_at)
     select gen_random_uuid(), n::text, 'data', 'data', '{}', '{}', now(), 'completed', gen_random_uuid(), now() - n * interval '1 hour'
     from generate_series(1, 20000) n`,
  )
  await pool.query('vacuum analyze outboxd.submission')
  const blocks: number[] = []
  const db: Database = {
    async query(text, values) {
      const { rows } = await pool.query(`explain (analyze, buffers, format json) ${text}`, values)
      const { Plan: plan } = rows[0]['QUERY PLAN'][0]
      blocks.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
      return pool.query(text, values)
    },
  }
  const read: string[] = []
  const sinceMs = Date.now() - 90 * 60_000
  for await (const entry of readAuditEntries(db, {
    sinceMs,
    untilMs: null,
    key: null,
    record: null,
    type: null,
    containing: null,
  }))
    if (entry.kind === 'record') read.push(entry.outboxId)
  expect(read).toEqual(['1'])
  expect(Math.max(...blocks)).toBeLessThan(30) // the whole index has some 150
})
