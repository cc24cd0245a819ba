import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'

/** Rows that wait and that no statement can name, as their ids are no UTF-8: claims leave them out, with those of their key behind. */
export interface UnreadableIds {
  /** Where it is time, looks for them and says which there are. @param statement null: every id can be read */
  tell(statement: string | null): Promise<void>
}

const tellEachMs = 60_000
/** More are not named. */
export const unreadableMax = 100

export function createUnreadableIds({ pool, ledger }: { pool: Database; ledger: Database }): UnreadableIds {
  let told: readonly string[] = []
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    async tell(statement) {
      if (statement === null || performance.now() - toldAt < tellEachMs) return
      const { rows } = await pool.query<{ id: string }>(statement)
      toldAt = performance.now()
      const now = rows.map(({ id }) => id)
      await raiseProblems(
        ledger,
        now.map((subject) => ({ kind: 'row_skipped', subject, detail, retryInMs: tellEachMs })),
      )
      const over = told.filter((id) => !now.includes(id))
      if (over.length > 0) await clearProblems(ledger, 'row_skipped', over)
      told = now
    },
  }
}

const detail =
  'its id (the bytes are given here in hexadecimal) is no UTF-8, so that it cannot be told from others, and rows of its key behind it wait: give it another id, or take it out of the outbox'
