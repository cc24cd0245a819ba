import { beforeEach, describe, expect, test } from 'vitest'
import {
  makeReportsDueAgain,
  readDueReports,
  readReportsToWriteBack,
  writeReportResults,
} from '../../src/ledger/reports.ts'
import type { Report, ReportResult } from '../../src/model/outbox.ts'
import type { Submission } from '../../src/model/submission.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import type { GivenChange } from '../support/change.ts'
import { claim, historyOf, openLedgerForFile, outcomeBatch, setLimit, transition } from '../support/ledger.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool))

async function step(submission: Submission, change: GivenChange): Promise<Submission> {
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [transition(submission, change)] }))
  return ledger.read(submission.id)
}

async function uncertain(): Promise<Submission> {
  await ledger.capture([{}])
  const [sending] = (await claim(ledger.dispatch(), { submissions: 1 })).submissions
  return step(sending as Submission, { state: 'uncertain', error: 'lost', errorCode: 'E' })
}

async function read() {
  const { fresh, alone } = await readDueReports(ledger.pool, { freshMax: 10, aloneMax: 10 })
  return readReportsToWriteBack({ ledger: ledger.pool, history: { stands: async () => true } }, [...fresh, ...alone])
}
const knows = (report: Report): ReportResult => ({ report, againInMs: null, code: null, problem: null })
const refused = (report: Report, againInMs = 0): ReportResult => ({
  report,
  againInMs,
  code: '23514',
  problem: { kind: 'report_refused', subject: report.outboxId, detail: 'SQLSTATE 23514', retryInMs: againInMs },
})
const problems = async () => {
  const { rows } = await ledger.pool.query('select kind, subject from outboxd.problem order by kind, subject')
  return rows
}
const only = async () => {
  const [report, ...others] = await read()
  expect(others).toEqual([])
  return report as NonNullable<typeof report>
}

test('the outcome of a record is reported once', async () => {
  const submission = await uncertain()
  const report = await only()
  expect(report).toMatchObject({ submissionId: submission.id, state: 'uncertain', errorCode: 'E', error: 'lost' })
  await writeReportResults(ledger.pool, [knows(report)])
  expect(await read()).toEqual([])
})

test('reports come oldest first, and no more than asked for', async () => {
  const submissions = [await uncertain(), await uncertain(), await uncertain()]
  const { fresh } = await readDueReports(ledger.pool, { freshMax: 2, aloneMax: 2 })
  expect(fresh.map(({ submissionId }) => submissionId)).toEqual(submissions.slice(0, 2).map(({ id }) => id))
})

test('a state that is written while an earlier one is being reported gets its own report', async () => {
  const submission = await uncertain()
  const report = await only()
  await step(submission, { state: 'discarded' })
  await writeReportResults(ledger.pool, [knows(report)])
  expect((await only()).state).toBe('discarded')
})

test('a report can be made due again if its row does not say what it should', async () => {
  await uncertain()
  const report = await only()
  await writeReportResults(ledger.pool, [knows(report)])
  await makeReportsDueAgain(ledger.pool, [report.outboxId])
  expect((await only()).submissionId).toBe(report.submissionId)
})

describe('a report that is put off', () => {
  test('waits for its time, comes apart from new reports, and counts its failures', async () => {
    await uncertain()
    await writeReportResults(ledger.pool, [refused(await only(), 60_000)])
    expect(await read()).toEqual([])
    await ledger.pool.query(`update outboxd.submission set report_not_before = now() - interval '1 s'`)
    await uncertain()
    const { fresh, alone } = await readDueReports(ledger.pool, { freshMax: 10, aloneMax: 10 })
    expect([fresh.map(({ failures }) => failures), alone.map(({ failures }) => failures)]).toEqual([[0], [1]])
  })

  test('is due at once when its record changes', async () => {
    const submission = await uncertain()
    await writeReportResults(ledger.pool, [refused(await only(), 60_000)])
    await step(submission, { state: 'discarded' })
    expect(await only()).toMatchObject({ state: 'discarded', failures: 1 })
  })

  test('is a problem until it is written back', async () => {
    const { outboxId } = await uncertain()
    await writeReportResults(ledger.pool, [refused(await only())])
    expect(await problems()).toEqual([{ kind: 'report_refused', subject: outboxId }])
    const again = await only()
    await writeReportResults(ledger.pool, [{ ...refused(again), problem: null }])
    expect(await problems()).toEqual([])
    await writeReportResults(ledger.pool, [refused(await only())])
    await writeReportResults(ledger.pool, [knows(await only())])
    expect(await problems()).toEqual([])
    expect(await read()).toEqual([])
  })

  test('is no problem if another instance has written it back meanwhile', async () => {
    await uncertain()
    const report = await only()
    await writeReportResults(ledger.pool, [knows(report)])
    await writeReportResults(ledger.pool, [refused(report)])
    expect([await problems(), await read()]).toEqual([[], []])
  })

  test('does not delay new reports, which are read by their own index', async () => {
    const plan = await inTransaction(ledger.pool, async (db) => {
      await db.query('set local enable_seqscan = off; set local enable_bitmapscan = off')
      const { rows } = await db.query<{ 'QUERY PLAN': string }>(
        `explain (costs off) select id from outboxd.submission
         where report_due and report_put_off is distinct from revision order by seq limit 500`,
      )
      return rows.map((row) => row['QUERY PLAN']).join()
    })
    expect(plan).toContain('using submission_report on')
    expect(plan).not.toContain('Sort')
  })
})

test('a ledger that lost data reports nothing, even before a check finds the loss', async () => {
  await uncertain()
  const { fresh } = await readDueReports(ledger.pool, { freshMax: 10, aloneMax: 10 })
  expect(
    await readReportsToWriteBack({ ledger: ledger.pool, history: { stands: async () => true } }, fresh),
  ).toHaveLength(1)
  const known = historyOf(ledger.pool)
  expect(await readReportsToWriteBack({ ledger: ledger.pool, history: known }, fresh)).toHaveLength(1)
  await ledger.pool.query('update outboxd.ledger set table_oid = table_oid + 1')
  expect(await readReportsToWriteBack({ ledger: ledger.pool, history: known }, fresh)).toEqual([])
  await ledger.pool.query('update outboxd.ledger set table_oid = table_oid - 1')
})
