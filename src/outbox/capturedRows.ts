import { differentRowMessage, isOtherRowSql, type RowConflict } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'

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
