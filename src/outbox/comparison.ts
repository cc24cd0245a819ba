import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { clearProblems } from '../ledger/problems.ts'
import { makeEndReportsDue } from '../ledger/reports.ts'
import { findRepeatedIds, stampsDifferInContentSql, tableProblemSubject } from '../ledger/rowConflicts.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { findRowsMissingInLedger, type LedgerGap, updateLedgerGapProblem } from './ledgerGap.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { Outbox } from './outbox.ts'
import { readRowsById } from './readRows.ts'
import { updateEditedRowsProblem } from './rowDifferences.ts'
import { clearRowsBehindCursorProblem, findRowsBehindCursor, requestTableReread } from './rowsBehindCursor.ts'
import { sliceRowsMax } from './slices.ts'
import { countUnknownStatuses, noUnknownStatuses, updateUnknownStatusProblem } from './unknownStatuses.ts'

export interface ComparisonOptions {
  ledger: pg.Pool
  outbox: Outbox
  who: string
  sliceRows: number
  /** The most slices of one comparison. The next comparison continues there. */
  slicesMax: number
}

/** A comparison takes about four minutes, most of which are pauses. */
export const ledgerComparisonBounds = { sliceRows: sliceRowsMax, slicesMax: 100 } as const

/** Finds rows that the ledger has lost, and rows that no claim reads because of their place or status. */
export interface LedgerComparison {
  /**
   * @param everyMs does nothing if an instance has compared within that time
   * @param mayGoOn asked between slices: false ends the round
   * @returns `begun` if the next round continues
   */
  runOnce(everyMs: number, mayGoOn: () => boolean): Promise<'not-due' | 'begun' | 'done'>
}

/** Leaves the database time for the ERP's own statements. */
const betweenSlicesMs = 100
const gapRowsMax = 10_000
/** A loop with a long round is reported as stuck, so this round ends and the next one continues. */
const roundMaxMs = 20_000

/**
 * Continues a search where it stopped.
 * @returns true at the table's end
 */
type Scan = (goOn: () => Promise<boolean>) => Promise<boolean>

export function createLedgerComparison({
  ledger,
  outbox,
  who,
  sliceRows,
  slicesMax,
}: ComparisonOptions): LedgerComparison {
  const reportAgain = (outboxIds: readonly string[]) => makeEndReportsDue(ledger, outboxIds, who)
  let gap: LedgerGap | null = null
  let behindAfter: string | null = null
  let statuses = noUnknownStatuses
  /** The scan in progress; null between two comparisons. */
  let stage: number | null = null

  const scans: readonly Scan[] = [
    async (goOn) => {
      const found = await findRowsMissingInLedger({ reportAgain, outbox, goOn, rowsMax: gapRowsMax, begun: gap })
      await updateLedgerGapProblem(ledger, found)
      const isThrough = !found.isCut || found.rows.length >= gapRowsMax
      gap = isThrough ? null : found
      return isThrough
    },
    inParts(slicesMax, async (goOn) => {
      const found = await findRowsBehindCursor(outbox, behindAfter, { goOn, sliceRows })
      behindAfter = found.rows > 0 ? null : found.after
      if (found.rows > 0) await inTransaction(ledger, (db) => requestTableReread(db, found))
      else if (behindAfter === null) await clearRowsBehindCursorProblem(ledger)
      return behindAfter === null
    }),
    inParts(slicesMax, async (goOn) => {
      statuses = await countUnknownStatuses(outbox, statuses, { goOn, sliceRows })
      await updateUnknownStatusProblem(ledger, statuses)
      return statuses.after === null
    }),
  ]

  return {
    async runOnce(everyMs, mayGoOn) {
      await clearStaleProblems(ledger)
      await clearOutdatedRowConflicts(outbox)
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

/** Prevents other instances from comparing at the same time. */
async function claimComparison(ledger: Database, everyMs: number): Promise<boolean> {
  const { rowCount } = await ledger.query(
    `update outboxd.outbox set compared_at = clock_timestamp() where is_current
       and (compared_at is null or compared_at < clock_timestamp() - $1 * interval '1 ms')`,
    [everyMs],
  )
  return (rowCount ?? 0) > 0
}

/**
 * Deletes problems that no daemon has renewed for five minutes, because the daemon ended or its filter changed. Rows
 * that are skipped in the ledger keep their problems.
 */
async function clearStaleProblems(ledger: Database): Promise<void> {
  await ledger.query(
    `delete from outboxd.problem p where seen_at < clock_timestamp() - interval '5 minutes'
       and (kind in ('foreign_outbox', 'foreign_service', 'foreign_ledger') or kind = 'row_skipped'
         and not exists (select from outboxd.skipped_row s where left(s.outbox_id, 500) = p.subject))`,
  )
}

const reviewedMax = 1_000

/**
 * Ends the conflicts of rows that the ERP has deleted, renumbered or corrected, and of edited rows whose records have
 * ended.
 */
export async function clearOutdatedRowConflicts(outbox: Outbox): Promise<void> {
  const { ledger } = outbox
  const { rows: raised } = await ledger.query<{ subject: string }>(
    `select subject from outboxd.problem where kind = 'row_conflict' and subject <> $1 order by random() limit $2`,
    [tableProblemSubject, reviewedMax],
  )
  const { rows: noted } = await ledger.query<{ id: string }>(
    `select outbox_id as id from outboxd.edited_row where outbox = outboxd.current_outbox() order by random() limit $1`,
    [reviewedMax],
  )
  if (raised.length + noted.length === 0) return // the ERP's database may be away
  const table = await outbox.open()
  const looked = [...new Set([...raised.map(({ subject }) => subject), ...noted.map(({ id }) => id)])]
  const rows = await readRowsById(table, looked)
  await acceptEnded(ledger, rows)
  const { conflicts, edited } = await table.memory.findKnown(rows)
  const repeated = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
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

/** Accepts a row's new contents if the row was edited before its end was written back. */
async function acceptEnded(ledger: Database, rows: readonly SeenRow[]): Promise<void> {
  await ledger.query(
    `update outboxd.submission s set row_stamp = r.stamp
     from json_to_recordset($1) as r("outboxId" text, stamp text), outboxd.edited_row e
     where s.outbox_id = r."outboxId" and s.outbox = outboxd.current_outbox() and e.outbox_id = s.outbox_id and e.outbox = s.outbox
       and s.state in ('completed', 'discarded') and (s.report_due or s.ended_at >= e.noted_at) and ${stampsDifferInContentSql('s.row_stamp', 'r.stamp')}`,
    [JSON.stringify(rows)],
  )
}
