import type { RowWithTransactionSearch } from '../ledger/history/createDataLossGuard.ts'
import type { RowSearchResult } from '../ledger/history/judgeDataLoss.ts'
import { isStatementCanceled } from '../postgres/sqlState.ts'
import { prefixedColumnSql } from './columns.ts'
import type { StampedRow } from './ledgerMemory.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { type readRowsUnderWayOfNextSlice, readRowsWithStamps, transactionIdInRowSql } from './rowsUnderWay.ts'

export interface RowWithTransactionId {
  outboxId: string
  said: string | null
  transactionId: string
}

type Row = RowWithTransactionId & StampedRow & { waits: boolean }

/** Finds rows in any state, also outside the filter. */
function namingStatements({ table, shape, rowsIncludingFailing }: OpenTable) {
  const { from, id, stamp, createdAt, mayWait, idType, idText } = rowsIncludingFailing
  const said = table.state === null ? 'null::text' : `${prefixedColumnSql(table.state.column)}::text`
  const transaction = transactionIdInRowSql(table, shape)
  const these = (its: string, recorded: string) =>
    `select ${idText} as "outboxId", ${its} as stamp, ${recorded} as "createdAt", (${mayWait}) is true as waits,
       ${said} as said, ${transaction} as "transactionId"
     from ${from} where ${id} = any($1::${idType}[]) and ${transaction} is not null`
  return { stamped: these(stamp, createdAt), unstamped: these(`'unreadable'`, 'null::text') }
}

/** Includes a row whose stamp raises an error. Leaves out a waiting row with changed contents. */
export async function readCapturedRowsWithTransactionId(
  outbox: Outbox,
  outboxIds: readonly string[],
): Promise<RowWithTransactionId[]> {
  const table = await outbox.open()
  const rows = await readRowsWithStamps<Row>(table.db, namingStatements(table), outboxIds)
  const { known, conflicts, edited } = await table.memory.findCapturedRows(
    rows.map(({ outboxId, stamp, createdAt }) => ({ outboxId, stamp, createdAt })),
  )
  const others = new Set(conflicts.map(({ outboxId }) => outboxId))
  const changed = new Set(edited)
  return rows
    .filter(({ outboxId, waits }) => known.has(outboxId) && !others.has(outboxId) && !(waits && changed.has(outboxId)))
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
