import type { Database } from '../postgres/database.ts'
import { isStatementCanceled } from '../postgres/sqlState.ts'
import type { RowExpressions } from './rowExpressions.ts'

/** A table is compared in slices, in the order of its ids, which has an index: so long as one is read nobody waits. */
export interface SliceStatements {
  /** The id that ends a slice. $1: its rows but one. With `after`, $2: the id before it. */
  readonly end: string
  readonly endAfter: string
  /** The condition of a slice, to follow another, and which parameters it takes. */
  within(after: boolean, upTo: boolean, firstParameter: number): string
}

export function sliceStatements({ from, id, idText, idType }: RowExpressions): SliceStatements {
  const end = (and: string) => `select ${idText} as id from ${from} where true${and} order by ${id} offset $1 limit 1`
  return {
    end: end(''),
    endAfter: end(` and ${id} > $2::${idType}`),
    within(after, upTo, first) {
      const lower = after ? ` and ${id} > $${first}::${idType}` : ''
      return upTo ? `${lower} and ${id} <= $${after ? first + 1 : first}::${idType}` : lower
    },
  }
}

/** Where a slice ends, and the values of its bounds, for a statement with `within`. */
export interface Slice {
  /** The id that ends it; null for the last. */
  readonly upTo: string | null
  readonly bounds: string[]
}

/** The slice of so many rows after an id; null: from the first row on. */
export async function readSlice(
  db: Database,
  { end, endAfter }: Pick<SliceStatements, 'end' | 'endAfter'>,
  after: string | null,
  sliceRows: number,
): Promise<Slice> {
  const last = after === null ? [] : [after]
  const { rows } = await db.query<{ id: string }>(after === null ? end : endAfter, [sliceRows - 1, ...last])
  const upTo = rows[0]?.id ?? null
  return { upTo, bounds: [...last, ...(upTo === null ? [] : [upTo])] }
}

/** Without an index on the id a slice is the whole table. */
export async function nullIfCanceled<T>(read: () => Promise<T | null>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (isStatementCanceled(error)) return null
    throw error
  }
}
