import { otherContents, type RowConflict, wholeTable } from '../ledger/sameRow.ts'

/** Rows whose ids the ledger knows and that are not as they were taken, as far as nobody was told yet. */
export interface Differences {
  /** Others than those that were taken: each is told by its id. */
  meetOthers(conflicts: readonly RowConflict[], stampOf: (outboxId: string) => string): void
  /** Edited, or others that are alike: they are told together. */
  meetEdited(outboxIds: readonly string[]): void
  /** Whether there is something to take. */
  hasMore(): boolean
  take(): RowConflict[]
}

/** More are told with those that were edited: an ERP that gives all its rows other keys has not so many conflicts. */
const namedMax = 100
const countedMax = 10_000
const examplesMax = 5

export function createDifferences(): Differences {
  const waiting = new Map<string, RowConflict>()
  /** By id and stamp: the row that comes after one that was taken out is another again. */
  const named = new Set<string>()
  const edited = new Set<string>()
  let toldEdited = 0

  function meetEdited(outboxIds: readonly string[]): void {
    for (const id of outboxIds) if (edited.size < countedMax) edited.add(id)
  }

  return {
    meetEdited,
    meetOthers(conflicts, stampOf) {
      for (const conflict of conflicts) {
        const name = `${conflict.outboxId} ${stampOf(conflict.outboxId)}`
        if (named.has(name)) continue
        if (named.size >= namedMax) meetEdited([conflict.outboxId])
        else waiting.set(conflict.outboxId, conflict)
        if (named.size < namedMax) named.add(name)
      }
    },
    hasMore: () => waiting.size > 0 || edited.size !== toldEdited,
    take() {
      const found = [...waiting.values()]
      waiting.clear()
      if (edited.size === toldEdited) return found
      toldEdited = edited.size
      const rows = `${edited.size}${edited.size === countedMax ? ' or more' : ''} ${edited.size === 1 ? 'row' : 'rows'}`
      return [...found, { outboxId: wholeTable, detail: otherContents(rows, [...edited].slice(0, examplesMax)) }]
    },
  }
}
