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
