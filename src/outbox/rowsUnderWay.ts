import { readLedgerId } from '../ledger/servedService.ts'
import type { Database } from '../postgres/database.ts'
import { columnSql, type TableShape, textSql } from './columns.ts'
import { isolateFailingRows } from './failingRows.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxTable } from './outboxTable.ts'
import { startSql } from './rowExpressions.ts'
import { findCapturedBySecondLedger } from './secondLedger.ts'
import { readSlice, type SliceStatements, sliceStatements } from './slices.ts'
import { formOf } from './stateForms.ts'

/** A row that says that it is under way. */
export interface RowUnderWay {
  outboxId: string
  stamp: string
  createdAt: string | null
  stateText: string
  transactionId: string | null
}

export interface UnderWayStatements extends SliceStatements {
  /** False if a row looks new until its end. */
  readonly canTell: boolean
  /** True if each end has its own value: a row that says "under way" was not told its end. */
  readonly hasEndValues: boolean
  /** A condition on rows; null if no row can say it. */
  readonly taken: string | null
  /** The same, or a row that waits and names a transaction: the ledger may have lost its record. */
  readonly takenOrNamed: string | null
  /**
   * Rows of a slice: after $1 if `after`, up to the last parameter if `upTo`. Reads neither filter nor stamp, because these may
   * fail for what a row holds.
   */
  rows(condition: string, after: boolean, upTo: boolean): string
  /** Those of the ids in $1 that the filter takes in. */
  readonly stamped: string
  readonly unstamped: string
}

/**
 * Statements that find rows under way. If one value means both "under way" and "done", only rows count that were recorded since the
 * ledger serves the table: another program may have done older ones.
 */
export function underWayStatements({ table, shape, rows: expressions, served }: OpenTable): UnderWayStatements {
  const { state } = table
  const { from, id, stamp, createdAt, mayWait, idType, idText, filtered } = expressions
  const form = formOf(state)
  const since = table.createdAt && startSql(table, shape, { id: null, at: new Date(served.sinceMs).toISOString() })
  const taken = form?.underWaySql(since) ?? null
  const transaction = transactionSql(table, shape)
  const named = table.write.some(({ what }) => what === 'transaction_id')
    ? `(${mayWait}) and ${transaction} is not null`
    : null
  const either = [taken, named].filter((condition) => condition !== null)
  const slices = sliceStatements(expressions)
  const these = (its: string) =>
    `select ${idText} as "outboxId", ${its} as stamp from ${from} where ${id} = any($1::${idType}[])${filtered}`
  return {
    stamped: these(stamp),
    unstamped: these(`'unreadable'`),
    ...slices,
    canTell: taken !== null,
    hasEndValues: form?.hasEndValues ?? false,
    taken,
    takenOrNamed: either.length === 0 ? null : `(${either.join(' or ')})`,
    rows(condition, after, upTo) {
      return `select ${idText} as "outboxId", '' as stamp, ${createdAt} as "createdAt",
          ${state ? `coalesce(${columnSql(state.column)}::text, 'that it waits')` : `'that it waits'`} as "stateText", ${transaction} as "transactionId"
        from ${from} where ${condition}${startSql(table, shape, served.start)}${slices.within(after, upTo, 1)} order by ${id}`
    },
  }
}

/** Takes some ten milliseconds. */
const sliceMax = 10_000

export interface UnderWaySlice {
  /** Not in the ledger. */
  unknown: RowUnderWay[]
  /** Ids of rows whose records have ended, although the rows say "under way". */
  known: string[]
  /** The id that ends the slice; null for the last. */
  upTo: string | null
  canTell: boolean
}

/**
 * Reads the rows of a slice, in the order of ids, that say they are under way.
 *
 * @param after        the id that ended the slice before
 * @param isWaitingToo also those that wait and name a transaction
 */
export async function readRowsUnderWay(
  outbox: Outbox,
  after: string | null,
  isWaitingToo = false,
): Promise<UnderWaySlice> {
  const table = await outbox.open()
  const taken = underWayStatements(table)
  const { canTell } = taken
  const condition = isWaitingToo ? taken.takenOrNamed : taken.taken
  if (condition === null) return { unknown: [], known: [], upTo: null, canTell }
  const { upTo, bounds } = await readSlice(table.db, taken, after, sliceMax)
  const { rows } = await table.db.query<RowUnderWay>(taken.rows(condition, after !== null, upTo !== null), bounds)
  const { known, conflicts } = await table.memory.findKnown(rows)
  const missed = rows.filter(({ outboxId }) => !known.has(outboxId))
  const missedIds = missed.map(({ outboxId }) => outboxId)
  const theirs =
    missed.length === 0
      ? new Set()
      : await findCapturedBySecondLedger(outbox.pool, await readLedgerId(outbox.ledger), missedIds)
  const others = new Set(conflicts.map(({ outboxId }) => outboxId))
  return {
    unknown: await stampOurs(
      table.db,
      taken,
      missed.filter(({ outboxId }) => !theirs.has(outboxId)),
    ),
    known: taken.hasEndValues ? [...known.difference(others)] : [],
    ...{ upTo, canTell },
  }
}

/**
 * Of taken rows that the ledger does not know those that are ours, with their stamps. A row that the filter fails for is
 * left out, as nobody knows whether it is ours; one whose stamp cannot be read has none that says anything.
 */
async function stampOurs(
  db: Database,
  { stamped, unstamped }: UnderWayStatements,
  rows: readonly RowUnderWay[],
): Promise<RowUnderWay[]> {
  const stamps = new Map<string, string>()
  const ask = async (statement: string, ids: readonly string[]) => {
    const found = await db.query<{ outboxId: string; stamp: string }>(statement, [ids])
    for (const { outboxId, stamp } of found.rows) stamps.set(outboxId, stamp)
  }
  const ids = rows.map(({ outboxId }) => outboxId)
  const unread = await isolateFailingRows(ids, (those) => ask(stamped, those))
  await isolateFailingRows(unread, (those) => ask(unstamped, those))
  return rows.flatMap((row) => {
    const stamp = stamps.get(row.outboxId)
    return stamp === undefined ? [] : [{ ...row, stamp }]
  })
}

/** What a row's columns for the transaction say, an expression; NULL if there is none, or nothing in it. */
export function transactionSql({ write }: OutboxTable, shape: TableShape): string {
  const texts = write
    .filter(({ what }) => what === 'transaction_id')
    .map(({ column: name }) => `nullif(btrim(${textSql(name, shape)}), '')`)
  return texts.length === 0 ? 'null::text' : `coalesce(${texts})`
}
