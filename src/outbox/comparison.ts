import { setTimeout } from 'node:timers/promises'
import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { makeReportsOfEndedRecordsDue } from '../ledger/reports.ts'
import { conflictsMax, raiseRowConflicts } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { clearOutdatedRowConflicts } from './rowConflicts.ts'
import { leaveOutCurrentRows, type RowUnderWay, readRowsUnderWay } from './rowsUnderWay.ts'
import { nullIfCanceled, readNextSliceBounds, sliceRowsMax } from './slices.ts'
import {
  countUnknownStatuses,
  readRowsBehindCursor,
  rowsBehindCursorMessage,
  type UnknownStatus,
  unknownStatusMessage,
} from './unclaimedRows.ts'

export interface TableComparison {
  /** False if rows do not show that they were captured. */
  canTell: boolean
  /** Rows marked as captured that are missing from the ledger. */
  rows: readonly RowUnderWay[]
  /** The ids of waiting rows behind the cursor; null if reading them took too long. */
  idsBehindCursor: readonly string[] | null
  /** Null if counting took too long. */
  statuses: readonly UnknownStatus[] | null
  /** True if the comparison stopped before the table's end. */
  isCut: boolean
  comparedUpToId: string | null
}

const nothingFound: TableComparison = {
  canTell: false,
  rows: [],
  idsBehindCursor: [],
  statuses: [],
  isCut: false,
  comparedUpToId: null,
}

interface ComparisonOptions {
  /** Includes waiting rows that contain a transaction id. */
  shouldIncludeWaiting?: boolean
  /** True skips the search for waiting rows behind the cursor and for unknown statuses. */
  onlyLost?: boolean
  /** Writes back again those of these records that have ended. Null for a command that changes nothing. */
  reportAgain: ((outboxIds: readonly string[]) => Promise<unknown>) | null
  /** Asked between two slices: false stops the comparison. */
  goOn(): boolean | Promise<boolean>
  sliceRows?: number
  /** The most found rows in memory. The comparison then stops. */
  rowsMax?: number
  previousPart?: TableComparison | undefined
}

/**
 * Writes back again if a row is under way but its record has ended, and the row does not show that end. A restored
 * ledger may have lost the note that this is due. A restored outbox may have lost what was written.
 */
export async function compareTableWithLedger(outbox: Outbox, options: ComparisonOptions): Promise<TableComparison> {
  const { shouldIncludeWaiting = false, onlyLost = false, reportAgain, goOn } = options
  const { sliceRows = sliceRowsMax, rowsMax = 100_000, previousPart = nothingFound } = options
  let { rows, idsBehindCursor, statuses, comparedUpToId } = previousPart
  for (;;) {
    const table = await outbox.open()
    const slice = await readNextSliceBounds(table.db, table.rows, comparedUpToId, sliceRows)
    const { unknown, known, canTell } = await readRowsUnderWay(table, slice, shouldIncludeWaiting)
    if (reportAgain && known.length > 0) await reportAgain(await leaveOutCurrentRows(outbox, table, known))
    rows = [...rows, ...unknown]
    if (!onlyLost && idsBehindCursor !== null && idsBehindCursor.length < rowsMax) {
      const more = await nullIfCanceled(() => outbox.queryTable((asked) => readRowsBehindCursor(asked, slice)))
      if (reportAgain) await raiseRowConflicts(outbox.ledger, more?.conflicts.slice(0, conflictsMax) ?? [])
      idsBehindCursor = more && [...idsBehindCursor, ...more.ids]
    }
    if (!onlyLost && statuses !== null) {
      const counted = statuses
      statuses = await nullIfCanceled(() => outbox.queryTable((asked) => countUnknownStatuses(asked, slice, counted)))
    }
    comparedUpToId = slice.upTo
    if (comparedUpToId === null || rows.length >= rowsMax || !(await goOn()))
      return { canTell, rows, idsBehindCursor, statuses, isCut: comparedUpToId !== null, comparedUpToId }
  }
}

interface LedgerComparisonOptions {
  ledger: Database
  outbox: Outbox
  who: string
  sliceRows?: number
  /** The most slices of one comparison. The next comparison continues where this one stopped. */
  slicesMax?: number
}

/** Leaves the database time for the ERP's own statements. */
const betweenSlicesMs = 100
const lostRowsMax = 10_000
/** A round ends after this time, because a loop with a long round is reported as stuck. The next round continues. */
const roundMaxMs = 20_000

export function createPeriodicTableComparison(options: LedgerComparisonOptions) {
  const { ledger, outbox, who, sliceRows = sliceRowsMax, slicesMax = 1_000 } = options
  const reportAgain = (outboxIds: readonly string[]) =>
    makeReportsOfEndedRecordsDue(ledger, outboxIds, { actor: 'daemon', who })
  let found: TableComparison | undefined
  /** Zero between two comparisons. */
  let slicesLeft = 0
  return {
    /**
     * @param everyMs does nothing if an instance has begun a comparison within this time
     * @returns `begun` if the next round continues
     */
    async runOnce(everyMs: number, mayGoOn: () => boolean): Promise<'not-due' | 'begun' | 'done'> {
      await clearStaleProblems(ledger)
      await clearOutdatedRowConflicts(outbox)
      if (slicesLeft === 0 && !(await claimComparison(ledger, everyMs))) return 'not-due'
      if (slicesLeft === 0) slicesLeft = slicesMax
      const until = performance.now() + roundMaxMs
      const goOn = async () => {
        slicesLeft -= 1
        if (slicesLeft === 0) return false
        await setTimeout(betweenSlicesMs)
        return mayGoOn() && performance.now() < until
      }
      const isReread = (found?.idsBehindCursor?.length ?? 0) > 0
      found = await compareTableWithLedger(outbox, {
        reportAgain,
        goOn,
        sliceRows,
        rowsMax: lostRowsMax,
        previousPart: found,
      })
      await updateProblems(ledger, found)
      if (!isReread && (found.idsBehindCursor?.length ?? 0) > 0) await requestTableReread(ledger)
      if (!found.isCut || found.rows.length >= lostRowsMax) {
        found = undefined
        slicesLeft = 0
      }
      return slicesLeft === 0 ? 'done' : 'begun'
    },
  }
}

export async function updateLedgerGapProblem(ledger: Database, found: TableComparison): Promise<void> {
  await updateProblem(ledger, 'ledger_behind', found.rows, found, ledgerGapMessage(found))
}

async function updateProblems(ledger: Database, found: TableComparison): Promise<void> {
  const { idsBehindCursor, statuses, isCut } = found
  await updateLedgerGapProblem(ledger, found)
  if (idsBehindCursor !== null)
    await updateProblem(
      ledger,
      'rows_passed_over',
      idsBehindCursor,
      found,
      rowsBehindCursorMessage(idsBehindCursor, isCut),
    )
  if (statuses !== null)
    await updateProblem(ledger, 'unknown_status', statuses, found, unknownStatusMessage(statuses, isCut))
}

/** Clears the problem only if the whole table was compared. */
async function updateProblem(
  ledger: Database,
  kind: 'ledger_behind' | 'rows_passed_over' | 'unknown_status',
  found: readonly unknown[],
  { isCut }: TableComparison,
  detail: string,
): Promise<void> {
  if (found.length > 0) await raiseProblems(ledger, [{ kind, subject: '', detail, retryInMs: null }])
  else if (!isCut) await clearProblems(ledger, kind, null)
}

export function ledgerGapMessage({ rows, isCut }: Pick<TableComparison, 'rows' | 'isCut'>): string {
  const [oldest] = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const many = `${rows.length}${isCut ? ' or more' : ''}`
  return `${many} rows are marked as captured but are missing from the ledger, so they are never sent. The first is ${rows[0]?.outboxId}${oldest ? `, the oldest was created ${oldest}` : ''}. See them with \`outboxd recover --dry-run\``
}

/** The next comparison comes after this time, not after an hour, so that the problem ends soon. */
const compareAgainMinutes = 5

/** Makes all instances read the table from its beginning. This captures only the rows that the ledger lacks. */
async function requestTableReread(ledger: Database): Promise<void> {
  await ledger.query(
    `update outboxd.ledger set readings = readings + 1,
       compared_at = clock_timestamp() - interval '1 hour' + $1 * interval '1 minute'`,
    [compareAgainMinutes],
  )
}

/** Prevents other instances from comparing at the same time. */
async function claimComparison(ledger: Database, everyMs: number): Promise<boolean> {
  const { rowCount } = await ledger.query(
    `update outboxd.ledger set compared_at = clock_timestamp()
     where compared_at is null or compared_at < clock_timestamp() - $1 * interval '1 ms'`,
    [everyMs],
  )
  return (rowCount ?? 0) > 0
}

/**
 * Deletes problems that no daemon has renewed for five minutes, because the daemon ended or its filter changed.
 * Problems of rows that the ledger records as skipped stay.
 */
async function clearStaleProblems(ledger: Database): Promise<void> {
  await ledger.query(
    `delete from outboxd.problem p where seen_at < clock_timestamp() - interval '5 minutes'
       and (kind in ('foreign_outbox', 'foreign_service') or kind = 'row_skipped'
         and not exists (select from outboxd.skipped_row s where left(s.outbox_id, 500) = p.subject))`,
  )
}
