import type { RowWithTransactionSearch } from '../ledger/history/createDataLossGuard.ts'
import type { RowSearchResult } from '../ledger/history/judgeDataLoss.ts'
import { isStatementCanceled } from '../postgres/sqlState.ts'
import { prefixedColumnSql } from './columns.ts'
import { readRowsThatDoNotFail } from './failingRows.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { Outbox } from './outbox.ts'
import { type readRowsUnderWayOfNextSlice, transactionIdInRowSql } from './rowsUnderWay.ts'

export interface RowWithTransactionId {
  outboxId: string
  said: string | null
  transactionId: string
}

/** Finds rows in any state, also outside the filter. */
export async function readCapturedRowsWithTransactionId(
  outbox: Outbox,
  outboxIds: readonly string[],
): Promise<RowWithTransactionId[]> {
  const { db, memory, table, shape, rows: expressions } = await outbox.open()
  const { from, id, idType, idText, created } = expressions
  const said = table.state === null ? 'null::text' : `${prefixedColumnSql(table.state.column)}::text`
  const transaction = transactionIdInRowSql(table, shape)
  const sql = `select ${idText} as "outboxId", ${created} as created, ${said} as said, ${transaction} as "transactionId"
    from ${from} where ${id} = any($1::${idType}[]) and ${transaction} is not null`
  // Ids that do not fit the column's type are those of no row.
  const rows = await readRowsThatDoNotFail<RowWithTransactionId & SeenRow>(db, sql, outboxIds)
  const { known, conflicts } = await memory.findCapturedRows(rows)
  const others = new Set(conflicts.map(({ outboxId }) => outboxId))
  return rows
    .filter(({ outboxId }) => known.has(outboxId) && !others.has(outboxId))
    .map(({ outboxId, said, transactionId }) => ({ outboxId, said, transactionId }))
}

/** After this time the search is left to the next round, because a loop with a long round is reported as stuck. */
const searchMs = 1_000
/** A result "none" holds for this multiple of the time that the search took, because a large table takes long. */
const holdsTimes = 10

type ReadSlice = (after: string | null) => ReturnType<typeof readRowsUnderWayOfNextSlice>

/**
 * Searches for a row that waits or is under way and contains a transaction id. Does not search a table without an index
 * on the id. `findNow` ignores an earlier result "none".
 */
export function createSearchForRowNamingTransaction(
  readRowsOfNextSlice: ReadSlice,
  elapsedMs: () => number = () => performance.now(),
): RowWithTransactionSearch {
  let after: string | null = null
  let tookMs = 0
  let noneUntilMs = Number.NEGATIVE_INFINITY

  async function findNow(): Promise<RowSearchResult> {
    const beganMs = elapsedMs()
    if (after === null) tookMs = 0
    const found = await search(beganMs + searchMs).catch((error: unknown): RowSearchResult => {
      if (!isStatementCanceled(error)) throw error
      after = null
      return { kind: 'none' }
    })
    tookMs += elapsedMs() - beganMs
    noneUntilMs = found.kind === 'none' ? elapsedMs() + holdsTimes * tookMs : Number.NEGATIVE_INFINITY
    return found
  }

  /** Continues where the previous call stopped. */
  async function search(untilMs: number): Promise<RowSearchResult> {
    for (;;) {
      const { unknown, upTo } = await readRowsOfNextSlice(after)
      const named = unknown.find(({ transactionId }) => transactionId !== null)
      if (named !== undefined) return { kind: 'named', outboxId: named.outboxId }
      after = upTo
      if (upTo === null) return { kind: 'none' }
      if (elapsedMs() > untilMs) return { kind: 'unknown' }
    }
  }

  return { findNow, find: async () => (elapsedMs() < noneUntilMs ? { kind: 'none' } : findNow()) }
}
