import type pg from 'pg'
import type { PrunedCounts, Retention } from '../../src/ledger/retention.ts'
import { readSettings, type Settings } from '../../src/ledger/settings.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { type PruneRoundResult, runPruneRound } from '../../src/outbox/prune.ts'
import { setSettings } from './ledger.ts'

export const toSettings = ({ days, payloadDays }: Retention): Settings => ({
  RETENTION_DAYS: String(days ?? 0),
  RETENTION_PAYLOAD_DAYS: String(payloadDays ?? 0),
})

/** Prunes until nothing is left to prune. @returns the counts */
export async function pruneAll(
  pool: pg.Pool,
  retention: Retention,
  outbox = new Outbox(pool, 'outbox', 1_000, pool),
): Promise<PrunedCounts & { end: PruneRoundResult }> {
  await setSettings(pool, toSettings(retention))
  const settings = (await readSettings(pool)) ?? {}
  let pruned: PrunedCounts = { submissions: 0, emptied: 0 }
  const end = await runPruneRound(outbox, {
    settings,
    turn: 'wait',
    goOn: () => true,
    onProgress(soFar) {
      pruned = soFar
    },
  })
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
