import type { RowsRequest } from '../model.ts'

export interface ScannedRow {
  outboxId: string
  type: string
  keyHash: string | null
  /** True if no row of this row's key may be captured now. */
  excepted: boolean | null
  /** The row's type, if only another instance has its mapping. */
  leftType: string | null
}

export type CapturableRowChooser = ReturnType<typeof createCapturableRowChooser>

/** Takes uncaptured rows in their order. */
export function createCapturableRowChooser(
  { limit, keyRowsMax }: Pick<RowsRequest, 'limit' | 'keyRowsMax'>,
  skippedIds: ReadonlySet<string>,
) {
  const goes = createKeyOrderFilter(keyRowsMax)
  const heldKeyHashes = new Set<string>()
  const rows: ScannedRow[] = []
  const leftTypes = new Set<string>()
  const mayGo = ({ outboxId, excepted, leftType }: ScannedRow) =>
    leftType === null && !skippedIds.has(outboxId.slice(0, idCharsMax)) && excepted !== true
  return {
    rows,
    leftTypes,
    isFull: () => rows.length >= limit,
    meet(row: ScannedRow) {
      const { keyHash, leftType } = row
      if (leftType !== null) leftTypes.add(leftType)
      if (goes(keyHash, mayGo(row))) rows.push(row)
      else if (keyHash !== null) heldKeyHashes.add(keyHash)
    },
    /** Makes all further rows of a key wait. */
    hold(keyHash: string) {
      goes(keyHash, false)
      heldKeyHashes.add(keyHash)
    },
    /** Returns the keys of the rows that may be captured if no earlier row of their key waits. */
    findFreeKeyHashes: (rows: readonly ScannedRow[]): Set<string> =>
      new Set(rows.filter(mayGo).flatMap(({ keyHash }) => keyHash ?? [])).difference(heldKeyHashes),
  }
}

/**
 * Keeps the rows of a key in order. After `keyRowsMax` rows of a key, or a row that has to wait, all later rows of the
 * key wait.
 *
 * `mayGo` is false if the row itself has to wait.
 */
export function createKeyOrderFilter(keyRowsMax: number): (keyHash: string | null, mayGo: boolean) => boolean {
  const lengths = new Map<string, number>()
  return (keyHash, mayGo) => {
    if (keyHash === null) return mayGo
    const length = lengths.get(keyHash) ?? 0
    const goes = mayGo && length < keyRowsMax
    lengths.set(keyHash, goes ? length + 1 : Number.POSITIVE_INFINITY)
    return goes
  }
}

/** The ledger cuts a row's id to this length when it records a problem, so only this part of an id is compared. */
export const idCharsMax = 500

/** Cuts ids as the ledger does. They are compared as text, because a cut id may not fit this column's type. */
export const shortenedIdSql = (idTextSql: string) => `left(${idTextSql}, ${idCharsMax})`

/**
 * The condition that a row's type is left to other instances. The parameter `firstParameter` has our types, the next
 * parameter the others' types.
 */
export function isTypeOfOtherInstancesSql(typeSql: string, firstParameter: number): string {
  return `(${typeSql} <> all($${firstParameter}::text[]) and ($${firstParameter + 1}::text[] is null or ${typeSql} = any($${firstParameter + 1}::text[])))`
}
