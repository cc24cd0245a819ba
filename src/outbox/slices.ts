import type { RowExpressions } from './statements.ts'

/** A table is compared in slices, in the order of its ids, which has an index: so long as one is read nobody waits. */
export interface SliceStatements {
  /** The id that ends a slice. $1: its rows but one. With `after`, $2: the id before it. */
  readonly end: string
  readonly endAfter: string
  /** The condition of a slice, to follow another, and which parameters it takes. */
  within(after: boolean, upTo: boolean, firstParameter: number): string
}

export function sliceStatements(
  from: string,
  { idText, idType, hasId, sort }: Pick<RowExpressions, 'idText' | 'idType' | 'hasId' | 'sort'>,
): SliceStatements {
  const id = sort.at(-1)?.expression
  const end = (and: string) =>
    `select ${idText} as id from ${from} where true${hasId}${and} order by ${id} offset $1 limit 1`
  return {
    end: end(''),
    endAfter: end(` and ${id} > $2::${idType}`),
    within(after, upTo, first) {
      const lower = after ? ` and ${id} > $${first}::${idType}` : ''
      return upTo ? `${lower} and ${id} <= $${after ? first + 1 : first}::${idType}` : lower
    },
  }
}
