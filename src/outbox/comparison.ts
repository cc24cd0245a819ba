import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { renewEnds } from '../ledger/reports.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { findGap, forgetForeign, forgetUnfilterable, type LedgerGap, takeComparison, tellGap } from './ledgerGap.ts'
import type { Outbox } from './outbox.ts'
import { countUnknownStatuses, noStatuses, tellUnknownStatuses } from './unknownStatuses.ts'

export interface ComparisonDeps {
  ledger: pg.Pool
  outbox: Pick<Outbox, 'readTaken' | 'readPassedOver' | 'readUnknownStatuses' | 'reviewConflicts'>
  /** For the log: whose word it is. */
  who: string
  /** Rows behind the position are looked at in slices of so many … */
  sliceRows: number
  /** … so many slices at most; the next comparison goes on from there. */
  slicesMost: number
}

/** Some four minutes, most of which are pauses. */
export const comparisonBounds = { sliceRows: 10_000, slicesMost: 100 } as const

/** Compares the outbox with the ledger: rows that the ledger has lost, and rows that nobody would look at, by their place or their status. */
export interface Comparison {
  /**
   * @param everyMs not where an instance has done so within that time
   * @param mayGoOn asked in between: false ends it
   * @returns `begun`: it goes on the next time
   */
  runOnce(everyMs: number, mayGoOn: () => boolean): Promise<'not-due' | 'begun' | 'done'>
}

/** A comparison leaves the ERP's database room. */
const betweenSlicesMs = 100
const gapRowsMax = 10_000
/** A round of a loop that takes long looks stuck: the next one goes on. */
const roundMaxMs = 20_000

/** What a comparison that was interrupted goes on with. */
type Stage = { kind: 'none' } | { kind: 'taken'; gap: LedgerGap } | { kind: 'passed' | 'statuses'; slices: number }

export function createComparison({ ledger, outbox, who, sliceRows, slicesMost }: ComparisonDeps): Comparison {
  const tellAgain = (outboxIds: readonly string[]) => renewEnds(ledger, outboxIds, who)
  let stage: Stage = { kind: 'none' }
  /** Where a table that is too large for one comparison goes on with the next. */
  let passedAfter: string | null = null
  let statuses = noStatuses

  /** @returns whether it is through */
  async function compareTaken(begun: LedgerGap | null, goOn: () => Promise<boolean>): Promise<boolean> {
    const gap = await findGap({ tellAgain, outbox, goOn, rowsMax: gapRowsMax, begun })
    await tellGap(ledger, gap)
    const isThrough = !gap.isCut || gap.rows.length >= gapRowsMax
    if (!isThrough) stage = { kind: 'taken', gap }
    return isThrough
  }

  async function comparePassed(before: number, goOn: () => Promise<boolean>): Promise<boolean> {
    let slices = before + 1
    const hasRoom = async () => slices++ < slicesMost && (await goOn())
    const found = await findPassedOver({ outbox, goOn: hasRoom, sliceRows, after: passedAfter })
    passedAfter = found.rows > 0 ? null : found.after
    if (found.rows > 0) await inTransaction(ledger, (db) => beginAnew(db, found))
    else if (passedAfter === null) await endPassedOver(ledger)
    const isThrough = passedAfter === null || slices > slicesMost
    if (!isThrough) stage = { kind: 'passed', slices }
    return isThrough
  }

  async function compareStatuses(before: number, goOn: () => Promise<boolean>): Promise<boolean> {
    let slices = before + 1
    const hasRoom = async () => slices++ < slicesMost && (await goOn())
    statuses = await countUnknownStatuses(outbox, statuses, { goOn: hasRoom, sliceRows })
    await tellUnknownStatuses(ledger, statuses)
    const isThrough = statuses.after === null || slices > slicesMost
    if (!isThrough) stage = { kind: 'statuses', slices }
    return isThrough
  }

  return {
    async runOnce(everyMs, mayGoOn) {
      await forgetForeign(ledger)
      await forgetUnfilterable(ledger)
      await outbox.reviewConflicts()
      if (stage.kind === 'none' && !(await takeComparison(ledger, everyMs))) return 'not-due'
      const until = performance.now() + roundMaxMs
      const goOn = async () => {
        await setTimeout(betweenSlicesMs)
        return mayGoOn() && performance.now() < until
      }
      if (stage.kind === 'none' || stage.kind === 'taken') {
        if (!(await compareTaken(stage.kind === 'taken' ? stage.gap : null, goOn))) return 'begun'
        stage = { kind: 'passed', slices: 0 }
      }
      if (stage.kind === 'passed') {
        if (!(await comparePassed(stage.slices, goOn))) return 'begun'
        stage = { kind: 'statuses', slices: 0 }
      }
      if (!(await compareStatuses(stage.slices, goOn))) return 'begun'
      stage = { kind: 'none' }
      return 'done'
    },
  }
}

/** Rows that wait behind the position up to which a table was read. */
export interface PassedOver {
  rows: number
  /** Null where there is none. */
  firstId: string | null
  /** The id from which to go on; null where the table's end was reached, or it has no position. */
  after: string | null
}

export interface PassedOverDeps {
  outbox: Pick<Outbox, 'readPassedOver'>
  /** Asked between two slices: false gives up. */
  goOn(): Promise<boolean>
  sliceRows: number
  /** Where to begin; null: at the first row. */
  after: string | null
}

/** Reads the outbox in slices, in the order of its ids, up to the first slice that has such rows. */
export async function findPassedOver({ outbox, goOn, sliceRows, after: begin }: PassedOverDeps): Promise<PassedOver> {
  let after = begin
  for (;;) {
    const slice = await outbox.readPassedOver(after, sliceRows)
    if (slice === null) return { rows: 0, firstId: null, after: null }
    const { unknown, upTo } = slice
    if (unknown.length > 0 || upTo === null) return { rows: unknown.length, firstId: unknown[0] ?? null, after: upTo }
    after = upTo
    if (!(await goOn())) return { rows: 0, firstId: null, after }
  }
}

/** In words, for the problem and for `check`; without the client's data. */
export function passedOverMessage({ rows, firstId, after }: PassedOver): string {
  const many = after === null ? `${rows}` : `${rows} or more`
  return `${many} ${rows === 1 && after === null ? 'row' : 'rows'} waited behind the position up to which the table had been read (the first is ${firstId}): rows came there that were loaded with ids or numbers of their own, or by a partition, a table that inherits, or a policy`
}

/** Other comparisons are an hour apart: this one shall soon say that it is over. */
const compareAgainMinutes = 5

/** Says so, and has all instances read the table from its beginning: what the ledger knows is passed over, the others are taken. */
export async function beginAnew(db: Database, found: PassedOver): Promise<void> {
  await raiseProblems(db, [
    { kind: 'rows_passed_over', subject: '', detail: passedOverMessage(found), retryInMs: null },
  ])
  await db.query(
    `update outboxd.outbox set readings = readings + 1,
       compared_at = clock_timestamp() - interval '1 hour' + $1 * interval '1 minute' where is_current`,
    [compareAgainMinutes],
  )
}

/** None was found: those that were told are taken. */
export const endPassedOver = (db: Database): Promise<void> => clearProblems(db, 'rows_passed_over', null)
