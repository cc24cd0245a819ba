import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { type RowUnderWay, readRowsUnderWay } from './rowsUnderWay.ts'
import { walkSlices } from './slices.ts'

export interface LedgerGap {
  /** False if the rows of this table do not show that they were captured. */
  canTell: boolean
  rows: RowUnderWay[]
  /** True if the search stopped at a bound. */
  isCut: boolean
  after: string | null
}

export interface LedgerGapSearch {
  outbox: Outbox
  /** Null for a command that changes nothing. Writes back again to rows whose records have ended. */
  reportAgain: ((outboxIds: readonly string[]) => Promise<unknown>) | null
  /** Includes waiting rows that name a transaction. */
  isWaitingToo?: boolean
  /** Asked between two slices: false stops the search. */
  goOn(): Promise<boolean>
  rowsMax: number
  /** An earlier search to continue. */
  begun: LedgerGap | null
}

/** The most rows that a command holds in memory. */
export const commandRowsInMemoryMax = 100_000

/**
 * Searches the outbox for rows that the ledger has lost. Writes back again to a row under way whose record has ended,
 * because a restored ledger may have lost the note that this is due.
 */
export async function findRowsMissingInLedger(search: LedgerGapSearch): Promise<LedgerGap> {
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

export function ledgerGapMessage({ rows, isCut }: LedgerGap): string {
  const [oldest] = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const many = `${rows.length}${isCut ? ' or more' : ''}`
  return `${many} rows say that they were captured and the ledger does not know them, so they are never sent. The first is ${rows[0]?.outboxId}${oldest ? `, the oldest was recorded ${oldest}` : ''}. See them with \`outboxd recover --dry-run\``
}

export async function updateLedgerGapProblem(ledger: Database, gap: LedgerGap): Promise<void> {
  if (gap.rows.length > 0)
    await raiseProblems(ledger, [
      { kind: 'ledger_behind', subject: '', detail: ledgerGapMessage(gap), retryInMs: null },
    ])
  else if (!gap.isCut) await clearProblems(ledger, 'ledger_behind', null)
}
