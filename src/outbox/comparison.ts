import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { renewEnds } from '../ledger/reports.ts'
import { inTransaction } from '../postgres/database.ts'
import { findGap, forgetForeign, forgetUnfilterable, type LedgerGap, takeComparison, tellGap } from './ledgerGap.ts'
import type { Outbox } from './outbox.ts'
import { beginAnew, endPassedOver, findPassedOver } from './passedOver.ts'
import { reviewConflicts } from './reviewConflicts.ts'
import { countUnknownStatuses, noStatuses, tellUnknownStatuses } from './unknownStatuses.ts'

export interface ComparisonDeps {
  ledger: pg.Pool
  outbox: Outbox
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
    const found = await findPassedOver(outbox, passedAfter, { goOn: hasRoom, sliceRows })
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
      await reviewConflicts(outbox)
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
