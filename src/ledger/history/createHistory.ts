import type pg from 'pg'
import { type Database, inTransaction } from '../../postgres/database.ts'
import {
  type HistoryMemory,
  type HistoryVerdict,
  type HistoryView,
  isOutlived,
  judgeHistory,
  type NamedRow,
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
  /**
   * Whether rows in hand may be captured. Asked beside `stands` once they are: a ledger without records goes by the outbox's rows, and
   * with these some may have come that name transactions.
   */
  mayTake(db: Database): Promise<boolean>
  /** A claim is committed: it must stand in the ledger from now on. */
  claimed(last: LastClaim): void
  /** Looks whether the history is as it was agreed to, and says so, or what was found, in the ledger. */
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
  /** For the ledger: whose word it is. */
  who: string
  /** How long after a slot was taken its last request may arrive. */
  reachMs: number
  /** Asked of a ledger without records. */
  namedRows: NamedRowSearch
  /** On a clock that goes on while the process is stopped. Milliseconds. */
  elapsedMs?: () => number
}

/** Who has not looked, or whose look has taken, for longer was stopped, and knows nothing of what others claimed then. */
const absentMs = 10_000
/** What was safe for so long on a server is safe on its synchronous standby. */
const settlesMs = 3_000

export function createHistory({
  pool,
  who,
  reachMs,
  namedRows,
  elapsedMs = () => performance.now(),
}: HistoryDeps): History {
  let lookedAtMs: number | null = null
  let settling: { lsn: string | null; sinceMs: number } | null = null
  let memory: HistoryMemory | null = null
  let remembered = nothingRemembered

  async function judge(
    db: Database,
    findNamed = namedRows.find,
  ): Promise<{ view: HistoryView | null; verdict: HistoryVerdict }> {
    const view = await readHistory(db, remembered)
    if (view === null) return { view, verdict: { kind: 'found', detail: rowIsGone, mayGoOn: false } }
    if (memory !== null && isOutlived(view, memory)) forget()
    return { view, verdict: await judgeHistory(view, memory, findNamed) }
  }

  /** A person has agreed to what there is, or is asked to: what was lost is told. */
  function forget(): void {
    memory = null
    remembered = nothingRemembered
    settling = null
  }

  function remember({ agreedAtMs, now, safeLsn, isEmpty }: HistoryView): void {
    memory = { agreedAtMs, timeline: now.timeline, hasWatched: memory?.hasWatched ?? false }
    remembered = { ...remembered, safeLsn, hasRecords: !isEmpty }
    const nowMs = elapsedMs()
    if (settling !== null && nowMs - settling.sinceMs < settlesMs) return
    remembered.settledLsn = settling === null ? safeLsn : settling.lsn
    settling = { lsn: safeLsn, sinceMs: nowMs }
  }

  /** Notes whether it has looked all the time. @returns what came of the look */
  async function attentively(look: () => Promise<HistoryLook>): Promise<HistoryLook> {
    const beganAtMs = elapsedMs()
    const isAbsent = (sinceMs: number, untilMs: number) => untilMs - sinceMs > absentMs
    if (memory !== null && lookedAtMs !== null && isAbsent(lookedAtMs, beganAtMs)) memory.hasWatched = false
    try {
      const seen = await look()
      if (memory !== null && seen.kind === 'stands') memory.hasWatched = !isAbsent(beganAtMs, elapsedMs())
      return seen
    } finally {
      lookedAtMs = elapsedMs()
    }
  }

  async function attend(view: HistoryView): Promise<void> {
    remember(view)
    if (view.isMarkDue) await markHistory(pool)
    const missedMs = standbyMissedMs(view)
    if (missedMs !== null) await inTransaction(pool, (db) => pauseForStandby(db, missedMs))
    else if (view.isPaused) await inTransaction(pool, endPauseForStandby)
  }

  async function look(): Promise<HistoryLook> {
    const { view, verdict } = await judge(pool)
    switch (verdict.kind) {
      case 'stands':
        if (view !== null) await attend(view)
        return { kind: 'stands' }
      case 'asks':
        return { kind: 'waits' }
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
    mayTake: async (db) => remembered.hasRecords || (await judge(db, namedRows.findNow)).verdict.kind === 'stands',
    claimed(last) {
      remembered = { ...remembered, claim: last }
    },
    look: () => attentively(look),
  }
}

const rowIsGone = 'it does not say any more which history it has'
