import { clearProblems } from '../ledger/problems.ts'
import { differentRowMessage, findRepeatedIds, isOtherRowSql, type RowConflict } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { readSeenRowsById } from './readRows.ts'

export interface SeenRow {
  outboxId: string
  /** The creation time as the table writes it. */
  created: string | null
}

export interface DatedRow extends SeenRow {
  /** ISO 8601 in UTC with microseconds. */
  createdAt: string | null
}

interface CapturedRows {
  /** The ids that the ledger has. */
  known: ReadonlySet<string>
  /** Rows that are not those that were captured under their ids. */
  conflicts: RowConflict[]
}

export async function findCapturedRows(ledger: Database, seen: readonly SeenRow[]): Promise<CapturedRows> {
  const { rows } = await ledger.query<{ id: string; isOther: boolean; state: string; recorded: string }>(
    `select s.outbox_id as id, ${isOtherRowSql} as "isOther", s.state,
       to_char(s.recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as recorded
     from json_to_recordset($1) as r("outboxId" text, created text)
       join outboxd.submission s on s.outbox_id = r."outboxId"`,
    [JSON.stringify(seen.map(({ outboxId, created }) => ({ outboxId, created })))],
  )
  return {
    known: new Set(rows.map(({ id }) => id)),
    conflicts: rows
      .filter(({ isOther }) => isOther)
      .map(({ id, state, recorded }) => ({ outboxId: id, detail: differentRowMessage(state, recorded) })),
  }
}

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
