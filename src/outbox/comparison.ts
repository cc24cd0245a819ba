import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { clearProblems } from '../ledger/problems.ts'
import { renewEnds } from '../ledger/reports.ts'
import { differsInContentSql, findDuplicates, wholeTableSubject } from '../ledger/rowConflicts.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import {
  claimComparison,
  clearStaleForeignProblems,
  clearStaleSkippedRows,
  findLedgerGap,
  type LedgerGap,
  updateLedgerGapProblem,
} from './ledgerGap.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { Outbox } from './outbox.ts'
import { readSeenRows } from './readRows.ts'
import { updateEditedRowsProblem } from './rowDifferences.ts'
import { clearRowsBehindCursor, findRowsBehindCursor, rereadFromStart } from './rowsBehindCursor.ts'
import { countUnknownStatuses, noUnknownStatuses, updateUnknownStatusProblem } from './unknownStatuses.ts'

export interface ComparisonOptions {
  ledger: pg.Pool
  outbox: Outbox
  /** The actor, for the log. */
  who: string
  /** Rows in a slice. */
  sliceRows: number
  /** The most slices of one comparison; the next comparison goes on from there. */
  slicesMax: number
}

/** Some four minutes, most of which are pauses. */
export const comparisonBounds = { sliceRows: 10_000, slicesMax: 100 } as const

/** Compares the outbox with the ledger: finds rows that the ledger has lost, and rows that no claim would look at because of their place or status. */
export interface Comparison {
  /**
   * @param everyMs does nothing if an instance has compared within that time
   * @param mayGoOn asked between slices: false ends the round
   * @returns `begun`: the next round goes on
   */
  runOnce(everyMs: number, mayGoOn: () => boolean): Promise<'not-due' | 'begun' | 'done'>
}

/** Leaves the ERP's database room. */
const betweenSlicesMs = 100
const gapRowsMax = 10_000
/** A round of a loop that takes long looks stuck: it ends, and the next one goes on. */
const roundMaxMs = 20_000

/** A scan through the table, which goes on where it had to stop. @returns whether it is through */
type Scan = (goOn: () => Promise<boolean>) => Promise<boolean>

export function createComparison({ ledger, outbox, who, sliceRows, slicesMax }: ComparisonOptions): Comparison {
  const tellAgain = (outboxIds: readonly string[]) => renewEnds(ledger, outboxIds, who)
  let gap: LedgerGap | null = null
  let passedAfter: string | null = null
  let statuses = noUnknownStatuses
  /** The scan that is under way; null between two comparisons. */
  let stage: number | null = null

  const scans: readonly Scan[] = [
    async (goOn) => {
      const found = await findLedgerGap({ tellAgain, outbox, goOn, rowsMax: gapRowsMax, begun: gap })
      await updateLedgerGapProblem(ledger, found)
      const isThrough = !found.isCut || found.rows.length >= gapRowsMax
      gap = isThrough ? null : found
      return isThrough
    },
    inParts(slicesMax, async (goOn) => {
      const found = await findRowsBehindCursor(outbox, passedAfter, { goOn, sliceRows })
      passedAfter = found.rows > 0 ? null : found.after
      if (found.rows > 0) await inTransaction(ledger, (db) => rereadFromStart(db, found))
      else if (passedAfter === null) await clearRowsBehindCursor(ledger)
      return passedAfter === null
    }),
    inParts(slicesMax, async (goOn) => {
      statuses = await countUnknownStatuses(outbox, statuses, { goOn, sliceRows })
      await updateUnknownStatusProblem(ledger, statuses)
      return statuses.after === null
    }),
  ]

  return {
    async runOnce(everyMs, mayGoOn) {
      await clearStaleForeignProblems(ledger)
      await clearStaleSkippedRows(ledger)
      await reviewConflicts(outbox)
      if (stage === null && !(await claimComparison(ledger, everyMs))) return 'not-due'
      const until = performance.now() + roundMaxMs
      const goOn = async () => {
        await setTimeout(betweenSlicesMs)
        return mayGoOn() && performance.now() < until
      }
      stage ??= 0
      for (; stage < scans.length; stage += 1) if (!(await scans[stage]?.(goOn))) return 'begun'
      stage = null
      return 'done'
    },
  }
}

/** A scan that reads `slicesMax` slices in one comparison and leaves the rest of a large table to the next one. */
function inParts(slicesMax: number, scan: Scan): Scan {
  let slices = 0
  return async (goOn) => {
    slices += 1
    const isThrough = await scan(async () => slices++ < slicesMax && (await goOn()))
    if (!isThrough && slices <= slicesMax) return false
    slices = 0
    return true
  }
}

/** Looked at in one round; what comes after waits for the next. */
const reviewedMax = 1_000

/**
 * Ends the conflicts of rows that the ERP has taken out, given another id, or put right, and of rows that were edited while their
 * records were under way, once these have ended.
 */
export async function reviewConflicts(outbox: Outbox): Promise<void> {
  const { ledger } = outbox
  const { rows: told } = await ledger.query<{ subject: string }>(
    `select subject from outboxd.problem where kind = 'row_conflict' and subject <> $1 order by random() limit $2`,
    [wholeTableSubject, reviewedMax],
  )
  const { rows: noted } = await ledger.query<{ id: string }>(
    `select outbox_id as id from outboxd.edited_row where outbox = outboxd.current_outbox() order by random() limit $1`,
    [reviewedMax],
  )
  if (told.length + noted.length === 0) return // without a look at the ERP's database, which may be away
  const table = await outbox.open()
  const looked = [...new Set([...told.map(({ subject }) => subject), ...noted.map(({ id }) => id)])]
  const rows = await readSeenRows(table, looked)
  await acceptEnded(ledger, rows)
  const { conflicts, edited } = await table.memory.findKnown(rows)
  const repeated = findDuplicates(rows.map(({ outboxId }) => outboxId))
  const standing = new Set([...conflicts.map(({ outboxId }) => outboxId), ...edited, ...repeated])
  const over = looked.filter((id) => !standing.has(id))
  if (over.length === 0) return
  await clearProblems(ledger, 'row_conflict', over)
  const { rowCount } = await ledger.query(
    'delete from outboxd.edited_row where outbox = outboxd.current_outbox() and outbox_id = any($1::text[])',
    [over],
  )
  if (rowCount) await updateEditedRowsProblem(ledger)
}

/**
 * Takes a row's contents as known if it was edited before its record ended, or before it could be told so: it is told the outcome
 * then, and only a later difference is a conflict.
 */
async function acceptEnded(ledger: Database, rows: readonly SeenRow[]): Promise<void> {
  await ledger.query(
    `update outboxd.submission s set row_stamp = r.stamp
     from json_to_recordset($1) as r("outboxId" text, stamp text), outboxd.edited_row e
     where s.outbox_id = r."outboxId" and s.outbox = outboxd.current_outbox() and e.outbox_id = s.outbox_id and e.outbox = s.outbox
       and s.state in ('completed', 'discarded') and (s.report_due or s.ended_at >= e.noted_at) and ${differsInContentSql('s.row_stamp', 'r.stamp')}`,
    [JSON.stringify(rows)],
  )
}
