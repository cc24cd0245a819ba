import { createHash } from 'node:crypto'
import type { RowExpressions } from './statements.ts'

/**
 * Stands for what a position rests on beside the table: which rows it takes in, from which start on, and in which order. Behind a
 * position lie rows that another description would take in, or that lay before a start position; so each has a position of its
 * own, and where there is none yet the table is read from its beginning. Rows that the ledger knows are passed over.
 *
 * @param rows     without regard to rows that the filter fails for: these come and go
 * @param readings how often the table was read from its beginning again
 */
export function nameSelection({ waits, sort }: Pick<RowExpressions, 'waits' | 'sort'>, readings: number): string {
  const said = JSON.stringify([waits, sort.map(({ expression }) => expression), readings])
  return createHash('sha256').update(said).digest('hex').slice(0, 16)
}
