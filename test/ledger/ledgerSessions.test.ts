import { beforeAll, describe, expect, test } from 'vitest'
import { readRequestDemand } from '../../src/ledger/budget.ts'
import { shortReadPlannerOptions } from '../../src/ledger/ledgerSessions.ts'
import { readDueReports } from '../../src/ledger/reports.ts'
import { createPool, type Database } from '../../src/postgres/database.ts'
import { openLedger } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'

const ledger = openForFile(openLedger)
beforeAll(async () => {
  // Finished records that the statistics do not count yet, because autovacuum runs once a minute.
  await ledger.capture(Array.from({ length: 2_000 }, () => ({ error: 'does not map' })))
})

/** Returns the plans of the statements that the work runs, in a pool with the daemon's settings. */
async function plansOf(work: (db: Database) => Promise<unknown>, answer = {}): Promise<string> {
  const url = ledger.url
  const pool = createPool({
    url,
    name: 'plans',
    connections: 1,
    onIdleError: () => {},
    settings: shortReadPlannerOptions,
  })
  const plans: string[] = []
  const explaining: Database = {
    async query(text, values) {
      const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`, values)
      plans.push(...rows.map((row) => row['QUERY PLAN']))
      return { rows: [answer] } as never
    },
  }
  await work(explaining).finally(() => pool.end())
  return plans.join('\n')
}

describe('each frequent read uses its own index, whatever the statistics say:', () => {
  test('the records and polls that could be sent', async () => {
    const plan = await plansOf((db) => readRequestDemand(db, 1_000))
    expect(plan).toContain('using job_common_i11 on job_common')
    expect(plan).toContain('using submission_ready on')
    expect(plan).not.toMatch(/Seq Scan on (submission|job)|Sort|Bitmap/)
  })

  test('the reports that are due', async () => {
    const plan = await plansOf((db) => readDueReports(db, { freshMax: 500, aloneMax: 50 }))
    expect(plan).toContain('using submission_report on')
    expect(plan).toContain('using submission_report_again on')
    expect(plan).not.toMatch(/Seq Scan|Sort|Bitmap|submission_outbox_row/)
  })
})
