import type { State } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'

/** What is left of a submission that was pruned. Times in epoch milliseconds. */
export interface PrunedSubmission {
  id: string
  state: State
  endedMs: number
  prunedMs: number
  transactionId: string | null
}

/** The pruned submission of a row of the outbox that is served; null where there is none. */
export async function readPruned(db: Database, outboxId: string): Promise<PrunedSubmission | null> {
  const { rows } = await db.query<PrunedSubmission>(
    `select id, state, extract(epoch from ended_at)::float8 * 1000 as "endedMs",
       extract(epoch from pruned_at)::float8 * 1000 as "prunedMs", transaction_id as "transactionId"
     from outboxd.pruned_submission where outbox_id = $1 and outbox = outboxd.current_outbox()`,
    [outboxId],
  )
  return rows[0] ?? null
}
