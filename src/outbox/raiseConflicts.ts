import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { conflictRetryMs, otherContents, type RowConflict, wholeTable } from '../ledger/sameRow.ts'
import type { Database } from '../postgres/database.ts'
import type { FoundDifferences } from './differences.ts'

/** Notes rows that are others than those that the ledger knows by their ids, and rows that were edited. */
export async function raiseConflicts(ledger: Database, { conflicts, edited }: FoundDifferences): Promise<void> {
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
  await tellEdited(ledger)
}

/** Says how many rows are noted as edited, as one problem of the whole table. */
export async function tellEdited(ledger: Database): Promise<void> {
  const { rows } = await ledger.query<{ count: number; examples: string[] }>(
    `select count(*)::int as count, coalesce((array_agg(outbox_id order by length(outbox_id), outbox_id))[1:5], '{}') as examples
     from outboxd.edited_row where outbox = outboxd.current_outbox()`,
  )
  const { count, examples } = rows[0] ?? { count: 0, examples: [] }
  if (count === 0) return clearProblems(ledger, 'row_conflict', [wholeTable])
  const detail = otherContents(count, examples)
  await raiseProblems(ledger, [{ kind: 'row_conflict', subject: wholeTable, detail, retryInMs: null }])
}
