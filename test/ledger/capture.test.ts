import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { insertCapturedRecords } from '../../src/ledger/capture.ts'
import { claimQueuedSubmissions } from '../../src/ledger/claims.ts'
import { readDueReports, readReportsToWriteBack } from '../../src/ledger/reports.ts'
import { openLedgerForFile } from '../support/ledger.ts'
import { record } from '../support/record.ts'

const ledger = openLedgerForFile()

test('a captured record is queued with its first event, and its payload keeps every digit that the ERP wrote', async () => {
  const payload = '{"amount":12345678901234567890.10,"text":"\\u0000 ü"}'
  const kept = record({ payload, createdAt: '2026-11-20T08:00:00.123456Z' })
  await insertCapturedRecords(ledger.pool, [kept], 'test')
  const row = await ledger.row(kept.id)
  expect(row).toMatchObject({ payload, state: 'queued', attempt: 0, held: false, report_due: false })
  expect(await ledger.read(kept.id)).toMatchObject({ recordedMs: Date.parse('2026-11-20T08:00:00.123Z') + 0.456 })
  expect(await ledger.events(kept.id)).toEqual(['new -> queued: captured'])
})

test('a record that did not map is rejected with the reason', async () => {
  const kept = record({ body: null, error: 'amount is missing', key: 'k' })
  await insertCapturedRecords(ledger.pool, [kept], 'test')
  expect(await ledger.row(kept.id)).toMatchObject({ state: 'rejected', error: 'amount is missing', held: false })
  expect(await ledger.events(kept.id)).toEqual(['new -> rejected: did not map'])
})

test('capturing a record twice changes nothing, but makes a report of its state due', async () => {
  const kept = record()
  await insertCapturedRecords(ledger.pool, [kept], 'test')
  await claimQueuedSubmissions(ledger.pool, { id: randomUUID(), instanceId: randomUUID(), limit: 1, who: 'test' })
  const before = await ledger.row(kept.id)
  await insertCapturedRecords(ledger.pool, [{ ...kept, id: randomUUID(), body: '{"other":1}' }], 'test')
  expect(await ledger.row(kept.id)).toEqual({ ...before, report_due: true })
  expect(await ledger.countStates()).toEqual({ sending: 1 })
  expect(await ledger.events(kept.id)).toEqual(['new -> queued: captured', 'queued -> sending: claimed'])
  const { fresh } = await readDueReports(ledger.pool, { freshMax: 10, aloneMax: 0 })
  expect(
    await readReportsToWriteBack({ ledger: ledger.pool, history: { stands: async () => true } }, fresh),
  ).toMatchObject([{ outboxId: kept.outboxId, state: 'sending' }])
})

test('the ledger keeps records in the order in which they came', async () => {
  const records = Array.from({ length: 50 }, () => record())
  await insertCapturedRecords(ledger.pool, records, 'test')
  const { rows } = await ledger.pool.query<{ id: string }>('select id from outboxd.submission order by seq')
  expect(rows.map(({ id }) => id)).toEqual(records.map(({ id }) => id))
})
