import type pg from 'pg'
import type { DueReport, Report, ToldReport } from '../model.ts'
import { inTransaction } from '../postgres/database.ts'
import type { History } from './history/createHistory.ts'
import { clearProblems, raiseProblems } from './problems.ts'
import { readDueReports, readReports, renewReports, writeTold } from './reports.ts'

/** Where the states that the outbox has yet to be told are kept. */
export interface OutboxReports {
  readDue(limits: { freshMax: number; againMax: number }): Promise<{ fresh: DueReport[]; again: DueReport[] }>
  /** What to tell these now; to be asked while no other instance tells any. */
  read(due: readonly DueReport[]): Promise<Report[]>
  /** Makes reports due of rows that do not say what they were meant to. */
  renew(outboxIds: readonly string[]): Promise<void>
  /** Writes what came of it, and the problems that stand, or stand no longer. */
  write(told: readonly ToldReport[]): Promise<void>
}

/** The kinds that a row which is told again may have had. */
const kinds = ['report_refused', 'report_locked', 'mark_ineffective', 'row_missing', 'row_conflict'] as const

/** @param history where it is another than was agreed to, nothing is told: rows may say more than the ledger knows */
export function createOutboxReports(pool: pg.Pool, history: Pick<History, 'stands'>): OutboxReports {
  return {
    readDue: (limits) => readDueReports(pool, limits),
    read: async (due) => ((await history.stands(pool)) ? readReports(pool, due) : []),
    renew: (outboxIds) => renewReports(pool, outboxIds),
    write: (told) =>
      inTransaction(pool, async (db) => {
        const written = await writeTold(db, told)
        const before = written.filter(({ report }) => report.failures > 0)
        for (const kind of kinds) {
          const cleared = before.filter(({ problem }) => problem?.kind !== kind).map(({ report }) => report.outboxId)
          if (cleared.length > 0) await clearProblems(db, kind, cleared)
        }
        await raiseProblems(
          db,
          written.flatMap(({ problem }) => problem ?? []),
        )
      }),
  }
}
