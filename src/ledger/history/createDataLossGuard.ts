import type pg from 'pg'
import { CommitUncertain, type Database, inTransaction } from '../../postgres/database.ts'
import {
  acceptHistoryAsDaemon,
  emptyInstanceMemory,
  hasSynchronousCommits,
  type InstanceMemory,
  type JudgedHistory,
  type LastClaim,
  noteHistorySeenUnchanged,
  raiseHistoryProblem,
  readAndJudgeHistory,
  updateStandbyPause,
} from './history.ts'
import {
  type HistoryReading,
  hasOperatorAgreedSince,
  type LedgerStandby,
  type RowSearchResult,
} from './judgeDataLoss.ts'

export type HistoryCheck =
  | { kind: 'stands' | 'waits' }
  | { kind: 'found'; detail: string }
  /** A declared standby was promoted. Sending continues. */
  | { kind: 'went-on' }

/**
 * Keeps all instances from sending from a ledger that has lost committed data:
 *
 *     mayClaim          in the transaction that claims requests or records
 *     isComplete        in the transaction that captures, because new rows would overtake lost records of their key;
 *                       before rows are written back, because the rows may know more than the ledger
 *     mayCapture        when capture has read rows: if the ledger is empty, rows may name transactions of lost records
 *     rememberClaim     after a claim's COMMIT: the ledger must have that claim from now on
 *     check             every 2 s: writes the finding into the ledger
 */
export type DataLossGuard = ReturnType<typeof createDataLossGuard>

export interface RowWithTransactionSearch {
  /** Reads the next part of the table for about a second, so a search may take many calls. */
  find(): Promise<RowSearchResult>
  /** Searches again after an earlier result of `none`. */
  findNow(): Promise<RowSearchResult>
}

export interface DataLossGuardDeps {
  pool: pg.Pool
  who: string
  requestOverAfterMs: number
  standby: LedgerStandby
  rowSearch: RowWithTransactionSearch
}

const markEveryMs = 10_000

export function createDataLossGuard({ pool, who, requestOverAfterMs, standby, rowSearch }: DataLossGuardDeps) {
  let remembered: InstanceMemory = emptyInstanceMemory

  const judge = (db: Database, findRowNamingTransaction = rowSearch.find): Promise<JudgedHistory> =>
    readAndJudgeHistory(db, remembered, { standby, findRowNamingTransaction })

  function remember(view: HistoryReading): void {
    const { agreedAtMs, now, safeLsn, isEmpty } = view
    const { history, claim } = remembered
    remembered = {
      history: { agreedAtMs, timeline: now.timeline },
      claim: history === null || hasOperatorAgreedSince(view, history) ? null : claim,
      ...{ safeLsn, hasRecords: !isEmpty },
    }
  }

  /** True if COMMITs should wait for a standby, but do not. */
  const isMissed = ({ isSynchronous }: HistoryReading) => standby === 'synchronous' && !isSynchronous

  async function attend(view: HistoryReading): Promise<void> {
    remember(view)
    if (Math.abs(view.markedForMs) > markEveryMs) await noteHistorySeenUnchanged(pool)
    if (isMissed(view) !== view.isStandbyMissed) await updateStandbyPause(pool, isMissed(view))
  }

  return {
    async mayClaim(db: Database): Promise<boolean> {
      const { reading, verdict } = await judge(db)
      if (reading === null || verdict.kind !== 'stands' || isMissed(reading)) return false
      remember(reading)
      return true
    },
    isComplete: async (db: Database) => (await judge(db)).verdict.kind === 'stands',
    mayCapture: async (db: Database) =>
      remembered.hasRecords || (await judge(db, rowSearch.findNow)).verdict.kind === 'stands',
    /** @throws CommitUncertain if a standby is declared and the COMMIT may not have waited for it */
    async rememberClaim(last: LastClaim): Promise<void> {
      if (standby === 'synchronous' && !(await hasSynchronousCommits(pool)))
        throw new CommitUncertain('the server waits for no standby any more')
      remembered = { ...remembered, claim: last }
    },
    async check(): Promise<HistoryCheck> {
      const { reading, verdict } = await judge(pool)
      switch (verdict.kind) {
        case 'stands':
          if (reading !== null) await attend(reading)
          return { kind: 'stands' }
        case 'asks':
          return { kind: 'waits' }
        case 'agrees':
          await inTransaction(pool, (db) => acceptHistoryAsDaemon(db, who))
          return { kind: verdict.isPromoted ? 'went-on' : 'waits' }
        case 'found':
          await inTransaction(pool, (db) =>
            raiseHistoryProblem(db, verdict.detail, { actor: 'daemon', who, overAfterMs: requestOverAfterMs }),
          )
          remembered = emptyInstanceMemory
          return verdict
        case 'waits':
          remembered = emptyInstanceMemory
          return { kind: 'waits' }
        default:
          return verdict satisfies never
      }
    },
  }
}
