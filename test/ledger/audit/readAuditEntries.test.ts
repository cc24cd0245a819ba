import { expect, onTestFinished, test } from 'vitest'
import { command as discard } from '../../../src/commands/discard.ts'
import { command as replay } from '../../../src/commands/replay.ts'
import { command as resolve } from '../../../src/commands/resolve.ts'
import { readAuditEntries } from '../../../src/ledger/audit/readAuditEntries.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { failedE003, openFixture } from '../../commands/fixture.ts'
import { createDatabase } from '../../support/database.ts'

const all = { sinceMs: null, untilMs: null, key: null, record: null, type: null, containing: null }

test('a record that operators change during the reading is read once, as it was before the change', async () => {
  await using fixture = await openFixture()
  await fixture.reset()
  const { pool } = fixture.ledger
  const replayed = await fixture.end(failedE003, { outboxId: '1' })
  const discarded = await fixture.end(failedE003, { outboxId: '2' })
  const corrected = await fixture.end({ state: 'uncertain', error: 'no answer', errorCode: null }, { outboxId: '3' })
  expect(await resolve.action(fixture.context(), corrected, { arrived: 'tx-3', unchecked: true, yes: true })).toBe(0)
  await pool.query(
    `update outboxd.submission set state = 'completed',
    ended_at = clock_timestamp(), report_due = false where id = $1`,
    [corrected],
  )
  await fixture.end({ state: 'completed', transactionId: 'tx-4', result: '{}' }, { outboxId: '4' })
  const read: string[] = []
  for await (const entry of readAuditEntries(pool, all)) {
    if (entry.kind !== 'record') continue
    read.push(`${entry.outboxId} ${entry.state}`)
    if (read.length > 1) continue
    expect(await replay.action(fixture.context(), [replayed], {})).toBe(0)
    expect(await discard.action(fixture.context(), [discarded], { reason: 'by hand' })).toBe(0)
    expect(await resolve.action(fixture.context(), corrected, { takeBack: true, yes: true })).toBe(0)
  }
  expect(read).toEqual(['1 failed', '2 failed', '3 completed', '4 completed'])
})

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
  for await (const entry of readAuditEntries(db, { ...all, sinceMs }))
    if (entry.kind === 'record') read.push(entry.outboxId)
  expect(read).toEqual(['1'])
  expect(Math.max(...blocks)).toBeLessThan(30) // the whole index has some 150
})
