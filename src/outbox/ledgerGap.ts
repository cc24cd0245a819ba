import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { type RowUnderWay, readRowsUnderWay } from './rowsUnderWay.ts'
import { walkSlices } from './slices.ts'

/** Rows that the ledger has lost: they are marked as captured, and the ledger does not know them. */
export interface LedgerGap {
  /** False if the rows of this table do not show that they were captured, so that no lost row can be found. */
  canTell: boolean
  /** In the order of their ids. */
  rows: RowUnderWay[]
  /** True if the search was given up at a bound, so that there may be more rows. */
  isCut: boolean
  /** The id from which to continue a search that was given up. */
  after: string | null
}

export interface GapSearch {
  outbox: Outbox
  /** Makes the daemons write back again to rows whose records have ended; null: a command that changes nothing. */
  reportAgain: ((outboxIds: readonly string[]) => Promise<unknown>) | null
  /** True to include waiting rows that name a transaction. */
  isWaitingToo?: boolean
  /** Asked between two slices: false gives up. */
  goOn(): Promise<boolean>
  rowsMax: number
  /** An earlier search that was given up, to continue. */
  begun: LedgerGap | null
}

/** The most rows that a command holds in memory; its next run finds the rest. */
export const commandRowsMax = 100_000

/**
 * Searches the outbox, slice by slice, for rows that the ledger has lost. If a row still shows that it is under way and its record has
 * ended, the row is written back again, because a restored ledger may have lost its note that the report is due.
 */
export async function findLedgerGap(search: GapSearch): Promise<LedgerGap> {
  const { outbox, reportAgain, isWaitingToo, rowsMax, begun } = search
  const rows = [...(begun?.rows ?? [])]
  let canTell = false
  const readNext = async (from: string | null) => {
    const slice = await readRowsUnderWay(outbox, from, isWaitingToo)
    canTell = slice.canTell
    rows.push(...slice.unknown)
    if (slice.known.length > 0) await reportAgain?.(slice.known)
    return slice.upTo
  }
  const after = await walkSlices(
    begun?.after ?? null,
    readNext,
    async () => rows.length < rowsMax && (await search.goOn()),
  )
  return { canTell, rows, isCut: after !== null, after }
}

/** Describes the rows for the problem and for `check`, without the client's data. */
export function ledgerGapMessage({ rows, isCut }: LedgerGap): string {
  const [oldest] = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const many = `${rows.length}${isCut ? ' or more' : ''}`
  return `${many} rows say that they were captured and the ledger does not know them, so they are never sent. The first is ${rows[0]?.outboxId}${oldest ? `, the oldest was recorded ${oldest}` : ''}. See them with \`outboxd recover --dry-run\``
}

/** Raises the problem, or clears it if a whole search has found no row. */
export async function updateLedgerGapProblem(ledger: Database, gap: LedgerGap): Promise<void> {
  if (gap.rows.length > 0)
    await raiseProblems(ledger, [
      { kind: 'ledger_behind', subject: '', detail: ledgerGapMessage(gap), retryInMs: null },
    ])
  else if (!gap.isCut) await clearProblems(ledger, 'ledger_behind', null)
}
