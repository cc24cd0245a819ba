import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { DatabaseAway, timeOfMicrosecondsSql, wrapAsDatabaseAway } from './sandboxDatabase.ts'

export interface Retention {
  rows: number
  /** Counted rows since then stay, because a restart restores the rate limit from them. */
  countedSinceUs: number
}

const pauseMs = 60_000
const batchRows = 10_000

export async function runLedgerRetention(
  pool: pg.Pool,
  retention: () => Retention,
  closing: AbortSignal,
): Promise<void> {
  while (!closing.aborted) {
    const deleted = await trimLedger(pool, retention()).catch((error: unknown) => complain(error, closing))
    if (deleted < batchRows) await delay(pauseMs, undefined, { signal: closing, ref: false }).catch(() => {})
  }
}

/** Silent if the database is away, because requests report that. */
function complain(error: unknown, closing: AbortSignal): number {
  if (closing.aborted || wrapAsDatabaseAway(error, false) instanceof DatabaseAway) return 0
  const reason = error instanceof Error ? error.message : error
  process.stderr.write(`sandbox: the ledger could not be trimmed: ${reason}\n`)
  return 0
}

/**
 * Deletes one batch beyond `rows`. Keeps applied idempotency keys and what counts against the rate limit. @returns the
 * number deleted
 */
export async function trimLedger(pool: pg.Pool, { rows, countedSinceUs }: Retention): Promise<number> {
  const { rowCount } = await pool.query(
    `
    delete from sandbox.ledger where sequence in (
      select sequence from sandbox.ledger
      where sequence <= (select max(sequence) from sandbox.ledger) - $1
        and not (idempotency_key is not null and (transaction_id is not null or order_id is not null))
        and not (counted and arrived_at > ${timeOfMicrosecondsSql('$2::bigint')})
      order by sequence
      limit $3
    )
    `,
    [rows, countedSinceUs, batchRows],
  )
  return rowCount ?? 0
}
