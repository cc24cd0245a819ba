import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { conflictRetryMs, editedRowsMessage, type RowConflict, tableProblemSubject } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'

export class RowDifferences {
  readonly #waiting = new Map<string, RowConflict>()
  readonly #waitingEdited = new Set<string>()
  /** Ids with stamps, because a later row of the same id may differ again. */
  readonly #named = new Set<string>()
  readonly #edited = new Set<string>()

  addConflicts(conflicts: readonly RowConflict[], stampOf: (outboxId: string) => string): void {
    for (const conflict of conflicts) {
      const name = `${conflict.outboxId} ${stampOf(conflict.outboxId)}`
      if (this.#named.has(name)) continue
      if (this.#named.size >= namedMax) this.addEdited([conflict.outboxId], stampOf)
      else {
        this.#waiting.set(conflict.outboxId, conflict)
        this.#named.add(name)
      }
    }
  }

  addEdited(outboxIds: readonly string[], stampOf: (outboxId: string) => string): void {
    for (const id of outboxIds) {
      const name = `${id} ${stampOf(id)}`
      if (this.#edited.size >= editedMax || this.#edited.has(name)) continue
      this.#edited.add(name)
      this.#waitingEdited.add(id)
    }
  }

  hasMore(): boolean {
    return this.#waiting.size + this.#waitingEdited.size > 0
  }

  take(): FoundDifferences {
    const found = { conflicts: [...this.#waiting.values()], edited: [...this.#waitingEdited] }
    this.#waiting.clear()
    this.#waitingEdited.clear()
    return found
  }
}

export interface FoundDifferences {
  conflicts: RowConflict[]
  edited: string[]
}

/**
 * Further conflicts count as edits, because an ERP that changes all keys does not cause thousands of real conflicts.
 */
const namedMax = 100
const editedMax = 10_000

export async function recordRowDifferences(ledger: Database, { conflicts, edited }: FoundDifferences): Promise<void> {
  await raiseProblems(
    ledger,
    conflicts.map(({ outboxId, detail }: RowConflict) => ({
      kind: 'row_conflict',
      subject: outboxId,
      detail,
      retryInMs: conflictRetryMs,
    })),
  )
  if (edited.length === 0) return
  await ledger.query(
    `insert into outboxd.edited_row (outbox_id, outbox) select id, outboxd.current_outbox() from unnest($1::text[]) id
     on conflict do nothing`,
    [edited],
  )
  await updateEditedRowsProblem(ledger)
}

export async function updateEditedRowsProblem(ledger: Database): Promise<void> {
  const { rows } = await ledger.query<{ count: number; examples: string[] }>(
    `select count(*)::int as count, coalesce((array_agg(outbox_id order by length(outbox_id), outbox_id))[1:5], '{}') as examples
     from outboxd.edited_row where outbox = outboxd.current_outbox()`,
  )
  const { count, examples } = rows[0] ?? { count: 0, examples: [] }
  if (count === 0) return clearProblems(ledger, 'row_conflict', [tableProblemSubject])
  const detail = editedRowsMessage(count, examples)
  await raiseProblems(ledger, [{ kind: 'row_conflict', subject: tableProblemSubject, detail, retryInMs: null }])
}
