import { clearProblems } from '../ledger/problems.ts'
import { findRepeatedIds } from '../ledger/rowConflicts.ts'
import { findCapturedRows } from './capturedRows.ts'
import type { Outbox } from './outbox.ts'
import { readSeenRowsById } from './readRows.ts'

const reviewedMax = 1_000

/** Clears the conflicts of rows that the ERP has deleted, renumbered or corrected. */
export async function clearOutdatedRowConflicts(outbox: Outbox): Promise<void> {
  const { ledger } = outbox
  const { rows: raised } = await ledger.query<{ subject: string }>(
    `select subject from outboxd.problem where kind = 'row_conflict' order by random() limit $1`,
    [reviewedMax],
  )
  if (raised.length === 0) return // the ERP's table may be locked
  const table = await outbox.open()
  const ids = raised.map(({ subject }) => subject)
  const rows = await readSeenRowsById(table, ids)
  const { conflicts } = await findCapturedRows(ledger, rows)
  const repeated = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
  const standing = new Set([...conflicts.map(({ outboxId }) => outboxId), ...repeated])
  const over = ids.filter((id) => !standing.has(id))
  if (over.length > 0) await clearProblems(ledger, 'row_conflict', over)
}
