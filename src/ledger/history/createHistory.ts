import type pg from 'pg'
import { type Database, inTransaction } from '../../postgres/database.ts'
import {
  decideHistory,
  type HistoryMemory,
  type HistoryVerdict,
  type HistoryView,
  isOutlived,
  standbyMissedMs,
} from './decideHistory.ts'
import { nothingRemembered, type Remembered, readHistory } from './readHistory.ts'
import {
  agreeByProof,
  agreeToUnused,
  endPauseForStandby,
  markHistory,
  pauseForStandby,
  raiseFound,
} from './writeHistory.ts'

/** The last of a claim, by which the ledger is known again. */
export type LastClaim = NonNullable<Remembered['claim']>

/** What an instance may do with the ledger as it is. */
export interface Leave {
  mayClaim: boolean
  /** Whether the COMMIT of this session is going to wait for a synchronous standby. */
  isSynchronous: boolean
}

/** What a look at the history has come to. */
export type HistoryLook =
  | { kind: 'stands' | 'waits' }
  | { kind: 'found'; detail: string; mayGoOn: boolean }
  | { kind: 'went-on' }

/** Sees to it that nothing is claimed in a ledger that has lost what was committed. */
export interface History {
  /** Asked in the transaction that takes slots or records, of which nothing may be committed where it says no. */
  readLeave(db: Database): Promise<Leave>
  /**
   * Whether it has all that was committed. Asked in the transaction that captures: rows taken before what was lost is back would overtake
   * it; and before rows are told anything: they may know more than it does.
   */
  stands(db: Database): Promise<boolean>
  /** A claim is committed: it must stand in the ledger from now on. */
  claimed(last: LastClaim): void
  /** Looks whether the history is as it was agreed to, and says so, or what was found, in the ledger. */
  look(): Promise<HistoryLook>
}

export interface HistoryDeps {
  pool: pg.Pool
  /** For the ledger: whose word it is. */
  who: string
  /** How long after a slot was taken its last request may arrive. */
  reachMs: number
}

export function createHistory({ pool, who, reachMs }: HistoryDeps): History {
  let memory: HistoryMemory | null = null
  let remembered = nothingRemembered

  async function judge(db: Database): Promise<{ view: HistoryView | null; verdict: HistoryVerdict }> {
    const view = await readHistory(db, remembered)
    if (view === null) return { view, verdict: { kind: 'found', detail: rowIsGone, mayGoOn: false } }
    if (memory !== null && isOutlived(view, memory)) forget()
    return { view, verdict: decideHistory(view, memory) }
  }

  /** A person has agreed to what there is, or is asked to: what was lost is told. */
  function forget(): void {
    memory = null
    remembered = nothingRemembered
  }

  function remember({ agreedAtMs, now, safeLsn }: HistoryView): void {
    memory = { agreedAtMs, timeline: now.timeline }
    remembered = { ...remembered, safeLsn }
  }

  async function attend(view: HistoryView): Promise<void> {
    remember(view)
    await markHistory(pool)
    const missedMs = standbyMissedMs(view)
    if (missedMs !== null) await inTransaction(pool, (db) => pauseForStandby(db, missedMs))
    else if (view.isPaused) await inTransaction(pool, endPauseForStandby)
  }

  return {
    async readLeave(db) {
      const { view, verdict } = await judge(db)
      if (view === null) return { mayClaim: false, isSynchronous: false }
      const mayClaim = verdict.kind === 'stands' && standbyMissedMs(view) === null
      if (mayClaim) remember(view)
      return { mayClaim, isSynchronous: view.isSynchronous }
    },
    stands: async (db) => (await judge(db)).verdict.kind === 'stands',
    claimed(last) {
      remembered = { ...remembered, claim: last }
    },
    async look() {
      const { view, verdict } = await judge(pool)
      switch (verdict.kind) {
        case 'stands':
          if (view !== null) await attend(view)
          return { kind: 'stands' }
        case 'new':
          await inTransaction(pool, (db) => agreeToUnused(db, who))
          return { kind: 'waits' }
        case 'found':
          await inTransaction(pool, (db) => raiseFound(db, verdict, { who, reachMs }))
          if (!verdict.mayGoOn) forget()
          return verdict
        case 'goes-on':
          return { kind: (await inTransaction(pool, (db) => agreeByProof(db, who))) ? 'went-on' : 'waits' }
        case 'waits':
          if (view?.mayGoOn === false) forget()
          return { kind: 'waits' }
        default:
          return verdict satisfies never
      }
    },
  }
}

const rowIsGone = 'it does not say any more which history it has'
