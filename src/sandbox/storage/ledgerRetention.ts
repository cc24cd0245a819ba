import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { SandboxClock } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { asAway, DatabaseAway, timeSql } from './sandboxDatabase.ts'

export interface Retention {
  rows: number
  sinceUs: number
  /** Since then rows stay if they count against the rate limit, or a restart would forget them. */
  countedSinceUs: number
}

const hourUs = 3_600_000_000
const pauseMs = 60_000
const batchRows = 10_000

/** Age is what has really passed: moving the clock on by a month deletes nothing. */
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

/** Trims once a minute until the sandbox closes. */
export async function trimForEver(pool: pg.Pool, retention: () => Retention, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    const deleted = await trimLedger(pool, retention()).catch((error: unknown) => complain(error, closing))
    if (deleted < batchRows) await delay(pauseMs, undefined, { signal: closing, ref: false }).catch(() => {})
  }
}

/** Requests tell that the database is away. @returns that no row was deleted */
function complain(error: unknown, closing: AbortSignal): number {
  if (closing.aborted || asAway(error, false) instanceof DatabaseAway) return 0
  const reason = error instanceof Error ? error.message : error
  process.stderr.write(`sandbox: the ledger could not be trimmed: ${reason}\n`)
  return 0
}

/**
 * Deletes one batch of rows that are too old or too many, but no idempotency key that was applied, and nothing that
 * counts against the rate limit. @returns how many
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
