import type pg from 'pg'
import { CommitUncertain, type Database, inTransaction } from '../../postgres/database.ts'
import { type HistoryView, isOutlived, type LedgerStandby, type NamedRow } from './decideHistory.ts'
import {
  type JudgedHistory,
  judgeHistory,
  type LastClaim,
  nothingRemembered,
  type Remembered,
  readCommitsWait,
} from './readHistory.ts'
import { agreeByDaemon, markHistory, raiseFound, tellStandbyMissed } from './writeHistory.ts'

/** The result of one look at the history. */
export type HistoryLook =
  | { kind: 'stands' | 'waits' }
  | { kind: 'found'; detail: string }
  /** A declared standby was promoted: sending goes on. */
  | { kind: 'went-on' }

/** Keeps everyone from claiming in a ledger that has lost what was committed. */
export interface History {
  /** Asked in the transaction that takes slots or records: if it says no, the transaction must not take any. */
  mayClaim(db: Database): Promise<boolean>
  /**
   * Whether the ledger has all that was committed. Asked in the transaction that captures, because rows taken too early would overtake
   * lost records of their key; and before rows are told anything, because they may know more than the ledger.
   */
  stands(db: Database): Promise<boolean>
  /**
   * Whether rows in hand may be captured. Asked once capture has read them: a ledger without records goes by the outbox's rows, and some
   * that name transactions may have come with these.
   */
  mayTake(db: Database): Promise<boolean>
  /**
   * A claim is committed: the ledger must have it from now on.
   *
   * @throws CommitUncertain if a standby is declared and the COMMIT may not have waited for it
   */
  claimed(last: LastClaim): Promise<void>
  /** Looks whether the history is as it was agreed to. Writes what it found into the ledger. */
  look(): Promise<HistoryLook>
}

/** Looks for a row of the outbox that names a transaction, for about a second. Each call goes on where the one before had to stop. */
export interface NamedRowSearch {
  /** For looks again and again: rows that come after there was none may be found late. */
  find(): Promise<NamedRow>
  /** Reads to the end of the table. Asked while rows are in hand, it misses none that came with them. */
  findNow(): Promise<NamedRow>
}

export interface HistoryDeps {
  pool: pg.Pool
  /** The instance, for the ledger. */
  who: string
  /** How long after a slot was taken its last request may arrive. */
  reachMs: number
  standby: LedgerStandby
  /** Asked if the ledger has no records. */
  namedRows: NamedRowSearch
}

const markEveryMs = 10_000

export function createHistory({ pool, who, reachMs, standby, namedRows }: HistoryDeps): History {
  let remembered: Remembered = nothingRemembered

  const judge = (db: Database, findNamed = namedRows.find): Promise<JudgedHistory> =>
    judgeHistory(db, remembered, { standby, findNamed })

  function remember(view: HistoryView): void {
    const { agreedAtMs, now, safeLsn, isEmpty } = view
    const { memory, claim } = remembered
    remembered = {
      memory: { agreedAtMs, timeline: now.timeline },
      claim: memory === null || isOutlived(view, memory) ? null : claim,
      ...{ safeLsn, hasRecords: !isEmpty },
    }
  }

  /** A COMMIT that waits for a standby is let go without a word when the server is told to wait for none. */
  const isMissed = ({ isSynchronous }: HistoryView) => standby === 'synchronous' && !isSynchronous

  async function attend(view: HistoryView): Promise<void> {
    remember(view)
    if (Math.abs(view.markedForMs) > markEveryMs) await markHistory(pool)
    if (isMissed(view) !== view.isStandbyMissed) await tellStandbyMissed(pool, isMissed(view))
  }

  return {
    async mayClaim(db) {
      const { view, verdict } = await judge(db)
      if (view === null || verdict.kind !== 'stands' || isMissed(view)) return false
      remember(view)
      return true
    },
    stands: async (db) => (await judge(db)).verdict.kind === 'stands',
    mayTake: async (db) => remembered.hasRecords || (await judge(db, namedRows.findNow)).verdict.kind === 'stands',
    async claimed(last) {
      if (standby === 'synchronous' && !(await readCommitsWait(pool)))
        throw new CommitUncertain('the server waits for no standby any more')
      remembered = { ...remembered, claim: last }
    },
    async look() {
      const { view, verdict } = await judge(pool)
      switch (verdict.kind) {
        case 'stands':
          if (view !== null) await attend(view)
          return { kind: 'stands' }
        case 'asks':
          return { kind: 'waits' }
        case 'agrees':
          await inTransaction(pool, (db) => agreeByDaemon(db, who))
          return { kind: verdict.isPromoted ? 'went-on' : 'waits' }
        case 'found':
          await inTransaction(pool, (db) => raiseFound(db, verdict.detail, { who, reachMs }))
          remembered = nothingRemembered
          return verdict
        case 'waits':
          remembered = nothingRemembered
          return { kind: 'waits' }
        default:
          return verdict satisfies never
      }
    },
  }
}
