import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { type RowUnderWay, readRowsUnderWay } from './rowsUnderWay.ts'

/** What came of comparing the outbox with the ledger. */
export interface LedgerGap {
  /** False if the rows do not say that they are under way, so that none can be found. */
  canTell: boolean
  /** Rows that say they were taken and that the ledger does not know, in the order of their ids. */
  rows: RowUnderWay[]
  /** There may be more: it was given up at a bound. */
  isCut: boolean
  /** The id from which to go on, if it was given up. */
  after: string | null
}

export interface GapSearch {
  /** Has rows told again that say they are under way of what the ledger knows; null: nobody tells them. */
  tellAgain: ((outboxIds: readonly string[]) => Promise<unknown>) | null
  outbox: Outbox
  /** Also rows that wait and name a transaction. */
  isWaitingToo?: boolean
  /** Asked between two slices: false gives up. */
  goOn(): Promise<boolean>
  rowsMax: number
  /** A comparison that was given up, to go on with. */
  begun: LedgerGap | null
}

/** Of a command: more at once would only be held in memory; the rest is for the next run. */
export const commandRowsMax = 100_000

/**
 * Reads the outbox in slices, in the order of its ids, for rows that say they were taken and that nobody will ever send. Those that say so
 * of what has come to its end are told again: what the ledger had noted of telling them may have been lost with it.
 */
export async function findLedgerGap({
  tellAgain,
  outbox,
  isWaitingToo,
  goOn,
  rowsMax,
  begun,
}: GapSearch): Promise<LedgerGap> {
  const rows = [...(begun?.rows ?? [])]
  let after = begun?.after ?? null
  for (;;) {
    const { unknown, known, upTo, canTell } = await readRowsUnderWay(outbox, after, isWaitingToo)
    rows.push(...unknown)
    if (known.length > 0) await tellAgain?.(known)
    if (upTo === null) return { canTell, rows, isCut: false, after: null }
    after = upTo
    if (rows.length >= rowsMax || !(await goOn())) return { canTell, rows, isCut: true, after }
  }
}

/** In words, for the problem and for `check`; without the client's data. */
export function ledgerGapMessage({ rows, isCut }: LedgerGap): string {
  const [first] = rows
  const oldest = rows
    .map(({ createdAt }) => createdAt)
    .filter((at) => at !== null)
    .sort()[0]
  const many = `${rows.length}${isCut ? ' or more' : ''}`
  return `${many} rows say that they were taken and the ledger does not know them: the first is ${first?.outboxId}${oldest ? `, the oldest was recorded ${oldest}` : ''}. Nobody will send them: outboxd recover --dry-run shows them`
}

/** Says how the comparison stands. */
export async function updateLedgerGapProblem(ledger: Database, gap: LedgerGap): Promise<void> {
  if (gap.rows.length > 0)
    await raiseProblems(ledger, [
      { kind: 'ledger_behind', subject: '', detail: ledgerGapMessage(gap), retryInMs: null },
    ])
  else if (!gap.isCut) await clearProblems(ledger, 'ledger_behind', null)
}

/** Claims the comparison, if nobody has done so for that long. */
export async function claimComparison(ledger: Database, everyMs: number): Promise<boolean> {
  const { rowCount } = await ledger.query(
    `update outboxd.outbox set compared_at = clock_timestamp() where is_current
       and (compared_at is null or compared_at < clock_timestamp() - $1 * interval '1 ms')`,
    [everyMs],
  )
  return (rowCount ?? 0) > 0
}

/** A row that a filter failed for, in a daemon that is no more or has another filter now: whoever meets it says so each minute. */
export async function clearStaleSkippedRows(ledger: Database): Promise<void> {
  await ledger.query(
    `delete from outboxd.problem p where kind = 'row_skipped' and seen_at < clock_timestamp() - interval '5 minutes'
       and not exists (select from outboxd.skipped_row s where left(s.outbox_id, 500) = p.subject)`,
  )
}

/** A daemon of another table, service or ledger that was refused and has gone says nothing more. */
export async function clearStaleForeignProblems(ledger: Database): Promise<void> {
  await ledger.query(
    `delete from outboxd.problem where kind in ('foreign_outbox', 'foreign_service', 'foreign_ledger') and seen_at < clock_timestamp() - interval '5 minutes'`,
  )
}
