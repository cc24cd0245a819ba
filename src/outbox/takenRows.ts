import type { StartPosition } from '../ledger/servedOutbox.ts'
import type { State } from '../model.ts'
import { column, literals } from './columns.ts'
import type { TableShape } from './inspectTable.ts'
import type { OutboxTable, StateColumn } from './outboxTable.ts'
import { startExpression } from './startPosition.ts'
import type { RowExpressions } from './statements.ts'

/** A row that says that it was taken and has not come to its end. */
export interface TakenRow {
  outboxId: string
  stamp: string
  createdAt: string | null
  /** What its state column says. */
  stateText: string
  /** What its column for the transaction says; null where there is none. */
  transactionId: string | null
}

export interface TakenStatements {
  /** The id that ends a slice. $1: its rows. With `after`, $2: the id before it. */
  readonly end: string
  readonly endAfter: string
  /** The taken rows of a slice: after $1 where `after`, up to the last parameter where `upTo`. */
  rows(after: boolean, upTo: boolean): string
}

const underWay: readonly State[] = ['queued', 'sending', 'accepted', 'uncertain', 'failed', 'rejected']

/**
 * How to find the rows that say they are under way; null where rows do not say it. What says only at its end that it is
 * done looks new until then. Where one value says both, only rows that were recorded since the ledger serves the table count:
 * others may have been done by somebody else, before us.
 */
export function takenStatements(
  table: OutboxTable,
  shape: TableShape,
  { stamp, createdAt, idType, idText, hasId, filtered }: RowExpressions,
  { start, sinceMs }: { start: StartPosition; sinceMs: number },
): TakenStatements | null {
  const { state } = table
  if (state === null) return null
  const condition = takenCondition(table, shape, state, sinceMs)
  if (condition === null) return null
  const id = column(table.id)
  const from = `${shape.qualified} o`
  const transaction = table.write.find(({ what }) => what === 'transaction_id')
  const end = (and: string) =>
    `select ${idText} as id from ${from} where true${hasId}${and} order by ${id} offset $1 limit 1`
  return {
    end: end(''),
    endAfter: end(` and ${id} > $2::${idType}`),
    rows(after, upTo) {
      const bounds = [
        after ? ` and ${id} > $1::${idType}` : '',
        upTo ? ` and ${id} <= $${after ? 2 : 1}::${idType}` : '',
      ]
      return `select ${idText} as "outboxId", ${stamp} as stamp, ${createdAt} as "createdAt",
          ${column(state.column)}::text as "stateText", ${transaction ? `${column(transaction.column)}::text` : 'null::text'} as "transactionId"
        from ${from} where ${condition}${hasId}${filtered}${startExpression(table, shape, start)}${bounds.join('')} order by ${id}`
    },
  }
}

function takenCondition(table: OutboxTable, shape: TableShape, state: StateColumn, sinceMs: number): string | null {
  const since = table.createdAt && startExpression(table, shape, { id: null, at: new Date(sinceMs).toISOString() })
  if (state.kind === 'timestamp')
    return state.set.includes('queued') && since ? `${column(state.column)} is not null${since}` : null
  const values = new Set(underWay.flatMap((at) => state.values.get(at) ?? []))
  for (const at of ['completed', 'discarded'] as const) values.delete(state.values.get(at) ?? '')
  if (values.size === 0) return null
  const says = `${column(state.column)} in (${literals(values)})`
  if (state.values.has('completed')) return says
  return since ? `${says}${since}` : null
}
