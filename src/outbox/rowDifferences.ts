import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import {
  conflictRetryMs,
  editedRowsMessage,
  findRepeatedIds,
  stampsDifferInContentSql,
  tableProblemSubject,
} from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import type { RowDifferences } from './cursorScan.ts'
import type { StampedRow } from './ledgerMemory.ts'
import type { Outbox } from './outbox.ts'
import { readStampedRowsById } from './readRows.ts'

/** Conflicts above this number count as edits, because the ERP has then changed a column of many rows. */
const conflictsMax = 100
const editedMax = 10_000

export async function recordRowDifferences(ledger: Database, { conflicts, editedIds }: RowDifferences): Promise<void> {
  await raiseProblems(
    ledger,
    conflicts.slice(0, conflictsMax).map(({ outboxId, detail }) => ({
      kind: 'row_conflict',
      subject: outboxId,
      detail,
      retryInMs: conflictRetryMs,
    })),
  )
  const asEdited = [...conflicts.slice(conflictsMax).map(({ outboxId }) => outboxId), ...editedIds].slice(0, editedMax)
  if (asEdited.length === 0) return
  await ledger.query(
    `insert into outboxd.edited_row (outbox_id, outbox) select id, outboxd.current_outbox() from unnest($1::text[]) id
     on conflict do nothing`,
    [asEdited],
  )
  await updateEditedRowsProblem(ledger)
}

async function updateEditedRowsProblem(ledger: Database): Promise<void> {
  const { rows } = await ledger.query<{ count: number; examples: string[] }>(
    `select count(*)::int as count, coalesce((array_agg(outbox_id order by length(outbox_id), outbox_id))[1:5], '{}') as examples
     from outboxd.edited_row where outbox = outboxd.current_outbox()`,
  )
  const { count, examples } = rows[0] ?? { count: 0, examples: [] }
  if (count === 0) return clearProblems(ledger, 'row_conflict', [tableProblemSubject])
  const detail = editedRowsMessage(count, examples)
  await raiseProblems(ledger, [{ kind: 'row_conflict', subject: tableProblemSubject, detail, retryInMs: null }])
}

const reviewedMax = 1_000

/**
 * Clears the conflicts of rows that the ERP has deleted, renumbered or corrected, and the edits of rows whose records
 * have ended.
 */
export async function clearOutdatedRowDifferences(outbox: Outbox): Promise<void> {
  const { ledger } = outbox
  const { rows: raised } = await ledger.query<{ subject: string }>(
    `select subject from outboxd.problem where kind = 'row_conflict' and subject <> $1 order by random() limit $2`,
    [tableProblemSubject, reviewedMax],
  )
  const { rows: noted } = await ledger.query<{ id: string }>(
    `select outbox_id as id from outboxd.edited_row where outbox = outboxd.current_outbox() order by random() limit $1`,
    [reviewedMax],
  )
  if (raised.length + noted.length === 0) return // the ERP's database may be down
  const table = await outbox.open()
  const looked = [...new Set([...raised.map(({ subject }) => subject), ...noted.map(({ id }) => id)])]
  const rows = await readStampedRowsById(table, looked)
  await acceptEnded(ledger, rows)
  const { conflicts, edited } = await table.memory.findCapturedRows(rows)
  const repeated = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
  const standing = new Set([...conflicts.map(({ outboxId }) => outboxId), ...edited, ...repeated])
  const over = looked.filter((id) => !standing.has(id))
  if (over.length === 0) return
  await clearProblems(ledger, 'row_conflict', over)
  const { rowCount } = await ledger.query(
    'delete from outboxd.edited_row where outbox = outboxd.current_outbox() and outbox_id = any($1::text[])',
    [over],
  )
  if (rowCount) await updateEditedRowsProblem(ledger)
}

/** Accepts the new contents of a row that was edited before its end was written back. */
async function acceptEnded(ledger: Database, rows: readonly StampedRow[]): Promise<void> {
  await ledger.query(
    `update outboxd.submission s set row_stamp = r.stamp
     from json_to_recordset($1) as r("outboxId" text, stamp text), outboxd.edited_row e
     where s.outbox_id = r."outboxId" and s.outbox = outboxd.current_outbox() and e.outbox_id = s.outbox_id and e.outbox = s.outbox
       and s.state in ('completed', 'discarded') and (s.report_due or s.ended_at >= e.noted_at) and ${stampsDifferInContentSql('s.row_stamp', 'r.stamp')}`,
    [JSON.stringify(rows)],
  )
}
