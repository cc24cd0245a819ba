import type { RowsRequest } from '../model.ts'

/** What there is to know of a row before it may be taken. */
export interface ScannedRow {
  outboxId: string
  /** Stands for the row's key. */
  line: string | null
  /** Its key has to stay. */
  excepted: boolean | null
  /** Its type, if another instance has to take it. */
  leftType: string | null
}

/** The rows that were chosen so far. */
export interface KeyOrderChoice {
  readonly outboxIds: string[]
  /** The types of rows left to other instances. */
  readonly leftTypes: ReadonlySet<string>
  isFull(): boolean
  meet(row: ScannedRow): void
}

/**
 * Chooses, of unknown rows met in order, those that may be taken.
 *
 * @param skipped ids of rows that are put off
 * @param held    lines of which none may be taken
 */
export function chooseInKeyOrder(
  { limit, keyRowsMax }: Pick<RowsRequest, 'limit' | 'keyRowsMax'>,
  skipped: ReadonlySet<string>,
  held: ReadonlySet<string>,
): KeyOrderChoice {
  const goes = createKeyOrder(keyRowsMax, held)
  const outboxIds: string[] = []
  const leftTypes = new Set<string>()
  return {
    outboxIds,
    leftTypes,
    isFull: () => outboxIds.length >= limit,
    meet({ outboxId, line, excepted, leftType }) {
      if (leftType !== null) leftTypes.add(leftType)
      const mayGo = leftType === null && !skipped.has(outboxId.slice(0, idCharsMax)) && excepted !== true
      if (goes(line, mayGo)) outboxIds.push(outboxId)
    },
  }
}

/**
 * Keeps the rows of each key in their order, as they are met in it: up to `keyRowsMax` of one key go, and behind the first
 * that stays, all of them stay.
 *
 * @param held lines that must not go at all
 * @returns tells of the next row whether it goes, given whether anything else is against it
 */
export function createKeyOrder(
  keyRowsMax: number,
  held: Iterable<string> = [],
): (line: string | null, mayGo: boolean) => boolean {
  const lengths = new Map([...held].map((line) => [line, Number.POSITIVE_INFINITY]))
  return (line, mayGo) => {
    if (line === null) return mayGo
    const length = lengths.get(line) ?? 0
    const goes = mayGo && length < keyRowsMax
    lengths.set(line, goes ? length + 1 : Number.POSITIVE_INFINITY)
    return goes
  }
}

/** Ids may be as long as the subject of a problem. */
export const idCharsMax = 500

/** Ids of rows that stay are compared as text: they may be of another outbox, and no value of this one's type. */
export const cutIdSql = (idText: string) => `left(${idText}, ${idCharsMax})`

/** Whether a row is left to an instance that knows its type; `$at` are the types that we know, the next those of others. */
export function staysSql(type: string, at: number): string {
  return `(${type} <> all($${at}::text[]) and ($${at + 1}::text[] is null or ${type} = any($${at + 1}::text[])))`
}
