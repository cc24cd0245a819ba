import type { Database } from '../postgres/database.ts'
import { raiseProblems } from './problems.ts'

/**
 * True if two creation times, as `RowExpressions.created` writes them, are of different rows. False if one is unknown, or
 * if they are of different columns, because outbox.yaml has changed since.
 */
export const areOtherRowsSql = (one: string, other: string): string =>
  `(left(${one}, 9) = left(${other}, 9) and ${one} <> ${other}) is true`

/** Like `areOtherRowsSql`. */
export const areOtherRows = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && one !== other && one.slice(0, 9) === other.slice(0, 9)

export interface RowConflict {
  outboxId: string
  detail: string
}

const conflictRetryMs = 600_000
/** The query for new rows lists their ids, so they must be few. */
export const conflictsMax = 1_000

export const differentRowMessage = (state: string, recorded: string): string =>
  `this is not the row that was captured under this id (created ${recorded}, its record is ${state}). The row is not sent, and nothing is written back to it`

const duplicateIdMessage = 'two rows of the outbox have this id, so neither is sent. Make their ids unique'

export function findRepeatedIds(ids: readonly string[]): Set<string> {
  const seen = new Set<string>()
  return new Set(ids.filter((id) => seen.size === seen.add(id).size))
}

/** Finds rows with a known id that are not the rows that were captured, and rows with the same id. */
export async function findRowConflicts(
  db: Database,
  rows: readonly { outboxId: string; created: string | null }[],
): Promise<RowConflict[]> {
  const repeated = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
  const single = rows.filter(({ outboxId }) => !repeated.has(outboxId))
  const { rows: others } = await db.query<{ outboxId: string; state: string; recorded: string }>(
    `select s.outbox_id as "outboxId", s.state,
       to_char(s.recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as recorded
     from json_to_recordset($1) as r("outboxId" text, created text)
     join outboxd.submission s on s.outbox_id = r."outboxId"
     where ${areOtherRowsSql('s.row_created', 'r.created')}`,
    [JSON.stringify(single.map(({ outboxId, created }) => ({ outboxId, created })))],
  )
  return [
    ...others.map(({ outboxId, state, recorded }) => ({ outboxId, detail: differentRowMessage(state, recorded) })),
    ...[...repeated].map((outboxId) => ({ outboxId, detail: duplicateIdMessage })),
  ]
}

export const raiseRowConflicts = (db: Database, conflicts: readonly RowConflict[]): Promise<void> =>
  raiseProblems(
    db,
    conflicts.map(({ outboxId, detail }) => ({
      kind: 'row_conflict',
      subject: outboxId,
      detail,
      retryInMs: conflictRetryMs,
    })),
  )
