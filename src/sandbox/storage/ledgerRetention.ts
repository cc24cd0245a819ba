import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { SandboxClock } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { asAway, DatabaseAway, timeSql } from './sandboxDatabase.ts'

/** What the ledger keeps. */
export interface Retention {
  /** The newest rows, at most this many. */
  rows: number
  /** No row that arrived before this. */
  sinceUs: number
  /** Rows since then stay if they count against the rate limit, or a restart would forget them. */
  countedSinceUs: number
}

const hourUs = 3_600_000_000
const pauseMs = 60_000
const batchRows = 10_000

/** What to keep now. Age is what has really passed: moving the clock on by a month, to see tokens end, deletes nothing. */
export function retentionAt(
  { ledgerRows, ledgerHours, rateLimitWindowSeconds }: LiveSettings,
  clock: Pick<SandboxClock, 'nowUs' | 'read'>,
): Retention {
  const nowUs = clock.nowUs()
  const notMovedUs = nowUs - clock.read().offsetSeconds * 1_000_000
  return {
    rows: ledgerRows,
    sinceUs: Math.round(notMovedUs - ledgerHours * hourUs),
    countedSinceUs: Math.round(nowUs - rateLimitWindowSeconds * 1_000_000),
  }
}

/**
 * Trims the ledger once a minute until the sandbox closes. A failure stops nothing: the next round comes soon.
 *
 * @param retention what is to be kept, as it is now
 */
export async function trimForEver(pool: pg.Pool, retention: () => Retention, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    const deleted = await trimLedger(pool, retention()).catch((error: unknown) => complain(error, closing))
    if (deleted < batchRows) await delay(pauseMs, undefined, { signal: closing, ref: false }).catch(() => {})
  }
}

/** That the database is away, requests tell. @returns that no row was deleted */
function complain(error: unknown, closing: AbortSignal): number {
  if (closing.aborted || asAway(error, false) instanceof DatabaseAway) return 0
  const reason = error instanceof Error ? error.message : error
  process.stderr.write(`sandbox: the ledger could not be trimmed: ${reason}\n`)
  return 0
}

/**
 * Deletes one batch of rows that are too old or too many.
 *
 * These stay: applied requests with an idempotency key, because the sandbox knows the key by them, and what counts against the
 * rate limit.
 *
 * @returns how many were deleted
 */
export async function trimLedger(pool: pg.Pool, { rows, sinceUs, countedSinceUs }: Retention): Promise<number> {
  const { rowCount } = await pool.query(
    `
    delete from sandbox.ledger where sequence in (
      select sequence from sandbox.ledger
      where sequence <= greatest(
          (select max(sequence) from sandbox.ledger) - $1,
          (select sequence from sandbox.ledger where arrived_at <= ${timeSql('$2::bigint')} order by arrived_at desc limit 1)
        )
        and not (idempotency_key is not null and (transaction_id is not null or order_id is not null))
        and not (counted and arrived_at > ${timeSql('$3::bigint')})
      order by sequence
      limit $4
    )
    `,
    [rows, sinceUs, countedSinceUs, batchRows],
  )
  return rowCount ?? 0
}
