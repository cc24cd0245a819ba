import type { RowsRequest } from '../model.ts'
import { idCharsMax } from './claimByLock.ts'
import { createKeyOrder } from './keyOrder.ts'

/** What there is to know of a row before it may be taken. */
export interface MetRow {
  outboxId: string
  /** Stands for the row's key. */
  line: string | null
  /** Its key has to stay. */
  excepted: boolean | null
  /** Its type, where another instance has to take it. */
  leftType: string | null
}

/** The rows that were chosen so far. */
export interface ChoiceInLine {
  readonly outboxIds: string[]
  /** The types of rows left to other instances. */
  readonly leftTypes: ReadonlySet<string>
  isFull(): boolean
  meet(row: MetRow): void
}

/**
 * Chooses, of unknown rows met in order, those that may be taken.
 *
 * @param skipped ids of rows that are put off
 * @param held    lines of which none may be taken
 */
export function chooseInLine(
  { limit, lineMax }: Pick<RowsRequest, 'limit' | 'lineMax'>,
  skipped: ReadonlySet<string>,
  held: ReadonlySet<string>,
): ChoiceInLine {
  const goes = createKeyOrder(lineMax, held)
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
