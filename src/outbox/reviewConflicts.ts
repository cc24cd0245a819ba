import { clearProblems } from '../ledger/problems.ts'
import { differsInContent, findRepeated, wholeTable } from '../ledger/sameRow.ts'
import type { Database } from '../postgres/database.ts'
import { tellEdited } from './differences.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { Outbox } from './outbox.ts'
import { lookAt } from './rows.ts'

/** Looked at in one round; what comes after waits for the next. */
const reviewedMax = 1_000

/**
 * Ends the conflicts of rows that the ERP has taken out, given another id, or put right, and of rows that were edited while their
 * records were under way, once these have ended.
 */
export async function reviewConflicts(outbox: Outbox): Promise<void> {
  const { ledger } = outbox
  const { rows: told } = await ledger.query<{ subject: string }>(
    `select subject from outboxd.problem where kind = 'row_conflict' and subject <> $1 order by random() limit $2`,
    [wholeTable, reviewedMax],
  )
  const { rows: noted } = await ledger.query<{ id: string }>(
    `select outbox_id as id from outboxd.edited_row where outbox = outboxd.current_outbox() order by random() limit $1`,
    [reviewedMax],
  )
  if (told.length + noted.length === 0) return // without a look at the ERP's database, which may be away
  const table = await outbox.open()
  const looked = [...new Set([...told.map(({ subject }) => subject), ...noted.map(({ id }) => id)])]
  const rows = await lookAt(table, looked)
  await acceptEnded(ledger, rows)
  const { conflicts, edited } = await table.memory.findKnown(rows)
  const repeated = findRepeated(rows.map(({ outboxId }) => outboxId))
  const standing = new Set([...conflicts.map(({ outboxId }) => outboxId), ...edited, ...repeated])
  const over = looked.filter((id) => !standing.has(id))
  if (over.length === 0) return
  await clearProblems(ledger, 'row_conflict', over)
  const { rowCount } = await ledger.query(
    'delete from outboxd.edited_row where outbox = outboxd.current_outbox() and outbox_id = any($1::text[])',
    [over],
  )
  if (rowCount) await tellEdited(ledger)
}

/**
 * Takes a row's contents as known if it was edited before its record ended, or before it could be told so: it is told the outcome
 * then, and only a later difference is a conflict.
 */
async function acceptEnded(ledger: Database, rows: readonly SeenRow[]): Promise<void> {
  await ledger.query(
    `update outboxd.submission s set row_stamp = r.stamp
     from json_to_recordset($1) as r("outboxId" text, stamp text), outboxd.edited_row e
     where s.outbox_id = r."outboxId" and s.outbox = outboxd.current_outbox() and e.outbox_id = s.outbox_id and e.outbox = s.outbox
       and s.state in ('completed', 'discarded') and (s.report_due or s.ended_at >= e.noted_at) and ${differsInContent('s.row_stamp', 'r.stamp')}`,
    [JSON.stringify(rows)],
  )
}
