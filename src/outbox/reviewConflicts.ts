import { clearProblems } from '../ledger/problems.ts'
import { findRepeated, wholeTable } from '../ledger/sameRow.ts'
import type { Database } from '../postgres/database.ts'
import type { CursorStore, SeenRow } from './cursorStore.ts'
import { isNoValueOfType } from './isNoValueOfType.ts'

export interface LookStatements {
  /** Rows by their ids in $1, whether or not they wait. */
  readonly look: string
  /** The same where one of them is no value of the id's type. */
  readonly lookByText: string
}

/** Looked at in one round; what comes after waits for the next. */
const reviewedMax = 1_000

/** Conflicts of rows that the ERP has taken out, given another id, or put right, are over. */
export async function reviewConflicts(
  { pool, ledger }: { pool: Database; ledger: Database },
  open: () => Promise<{ sql: LookStatements; memory: CursorStore }>,
): Promise<void> {
  const { rows: told } = await ledger.query<{ subject: string }>(
    `select subject from outboxd.problem where kind = 'row_conflict' and subject <> $1 order by random() limit $2`,
    [wholeTable, reviewedMax],
  )
  if (told.length === 0) return // without a look at the ERP's database, which may be away
  const { sql, memory } = await open()
  const subjects = told.map(({ subject }) => subject)
  const rows = await lookAt(pool, sql, subjects)
  const { conflicts, edited } = await memory.findKnown(rows)
  const repeated = findRepeated(rows.map(({ outboxId }) => outboxId))
  const standing = new Set([...conflicts.map(({ outboxId }) => outboxId), ...edited, ...repeated])
  const over = subjects.filter((subject) => !standing.has(subject))
  if (over.length > 0) await clearProblems(ledger, 'row_conflict', over)
}

/** The rows of these ids that are there, whether or not they wait. */
export async function lookAt(pool: Database, sql: LookStatements, outboxIds: readonly string[]): Promise<SeenRow[]> {
  const { rows } = await pool.query<SeenRow>(sql.look, [outboxIds]).catch((error: unknown) => {
    if (!isNoValueOfType(error)) throw error
    return pool.query<SeenRow>(sql.lookByText, [outboxIds]) // slower: it has no index
  })
  return rows
}
