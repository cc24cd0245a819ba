import type pg from 'pg'
import { inTransaction } from './database.ts'
import {
  acknowledgeReports,
  hasReports,
  type Report,
  readReports,
  renewReports,
  takeReportTurn,
} from './ledger/reports.ts'

/** Where the states that the outbox has yet to be told are kept. */
export interface ReportDesk {
  /**
   * Hands the oldest due reports to `deliver` and marks them as delivered when it resolves. One instance at a time.
   *
   * @returns how many were delivered
   */
  deliver(limit: number, deliver: (reports: Report[]) => Promise<void>): Promise<number>
}

export function createReportDesk(pool: pg.Pool): ReportDesk {
  return {
    async deliver(limit, deliver) {
      if (!(await hasReports(pool))) return 0
      let begun: Report[] = []
      try {
        return await inTransaction(pool, async (db) => {
          if (!(await takeReportTurn(db))) return 0
          const reports = await readReports(db, limit)
          if (reports.length === 0) return 0
          begun = reports
          await deliver(reports)
          await acknowledgeReports(db, reports)
          return reports.length
        })
      } catch (error) {
        // The turn may have been lost in between and a later state reported: the truth is told once more.
        if (begun.length > 0) await renewReports(pool, begun)
        throw error
      }
    },
  }
}
