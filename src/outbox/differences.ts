import type { RowConflict } from '../ledger/sameRow.ts'

/** Rows whose ids the ledger knows and that are not as they were taken, as far as nobody was told yet. */
export interface Differences {
  /** Others than those that were taken: each is told by its id. */
  meetOthers(conflicts: readonly RowConflict[], stampOf: (outboxId: string) => string): void
  /** Edited, or others that are alike: they are told together. */
  meetEdited(outboxIds: readonly string[], stampOf: (outboxId: string) => string): void
  /** Whether there is something to take. */
  hasMore(): boolean
  take(): FoundDifferences
}

export interface FoundDifferences {
  conflicts: RowConflict[]
  /** Ids of edited rows. */
  edited: string[]
}

/** More are told with those that were edited: an ERP that gives all its rows other keys has not so many conflicts. */
const namedMax = 100
const editedMax = 10_000

export function createDifferences(): Differences {
  const waiting = new Map<string, RowConflict>()
  const waitingEdited = new Set<string>()
  /** By id and stamp: the row that comes after one that was taken out is another again. */
  const named = new Set<string>()
  const edited = new Set<string>()

  const meetEdited: Differences['meetEdited'] = (outboxIds, stampOf) => {
    for (const id of outboxIds) {
      const name = `${id} ${stampOf(id)}`
      if (edited.size >= editedMax || edited.has(name)) continue
      edited.add(name)
      waitingEdited.add(id)
    }
  }

  return {
    meetEdited,
    meetOthers(conflicts, stampOf) {
      for (const conflict of conflicts) {
        const name = `${conflict.outboxId} ${stampOf(conflict.outboxId)}`
        if (named.has(name)) continue
        if (named.size >= namedMax) meetEdited([conflict.outboxId], stampOf)
        else {
          waiting.set(conflict.outboxId, conflict)
          named.add(name)
        }
      }
    },
    hasMore: () => waiting.size + waitingEdited.size > 0,
    take() {
      const found = { conflicts: [...waiting.values()], edited: [...waitingEdited] }
      waiting.clear()
      waitingEdited.clear()
      return found
    },
  }
}
