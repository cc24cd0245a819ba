import { raiseProblems } from '../ledger/problems.ts'
import { conflictRetryMs, type RowConflict, wholeTable } from '../ledger/sameRow.ts'
import type { Database } from '../postgres/database.ts'

/** Notes rows that are others than those that the ledger knows by their ids. */
export async function raiseConflicts(ledger: Database, conflicts: readonly RowConflict[]): Promise<void> {
  await raiseProblems(
    ledger,
    conflicts.map(({ outboxId, detail }) => ({
      kind: 'row_conflict',
      subject: outboxId,
      detail,
      retryInMs: outboxId === wholeTable ? null : conflictRetryMs,
    })),
  )
}
