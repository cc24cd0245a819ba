import type pg from 'pg'
import { type PruneDeps, type PrunedCounts, type PruneRoundResult, runPruneRound } from '../../src/ledger/retention.ts'

/** An outbox whose rows are never deleted. */
export const allThere: PruneDeps['outbox'] = { findExistingRows: async (ids) => new Set(ids) }

/** Prunes until nothing is left to prune. @returns the counts */
export async function pruneAll(
  pool: pg.Pool,
  retention: { days: number | null; payloadDays: number | null },
  outbox: PruneDeps['outbox'] = allThere,
): Promise<PrunedCounts & { end: PruneRoundResult }> {
  let pruned: PrunedCounts = { submissions: 0, emptied: 0, forgotten: 0 }
  const end = await runPruneRound(
    { ledger: pool, outbox },
    {
      retention,
      turn: 'wait',
      goOn: () => true,
      onProgress(soFar) {
        pruned = soFar
      },
    },
  )
  return { ...pruned, end }
}

/** Makes a submission look as if it had ended `days` ago and been written back. */
export async function endAgo(pool: pg.Pool, days: number, where = 'true'): Promise<void> {
  await pool.query(
    `update outboxd.submission set ended_at = now() - $1 * interval '1 day', report_due = false where ended_at is not null and ${where}`,
    [days],
  )
}

/** Completes all queued submissions as of `days` ago, and marks them as written back. */
export async function completeAgo(pool: pg.Pool, days: number): Promise<void> {
  await pool.query(
    `update outboxd.submission set state = 'completed', held = false, due_at = null, transaction_id = 'tx-' || outbox_id,
       ended_at = now() - $1 * interval '1 day', report_due = false where state = 'queued'`,
    [days],
  )
}
