import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { SandboxClock } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { asAway, DatabaseAway } from './databaseAway.ts'
import { time } from './sqlValues.ts'

/** What the ledger keeps. */
export interface Retention {
  /** So many rows, the newest. */
  rows: number
  /** None that arrived before this. */
  sinceUs: number
  /** What arrived since then and counts against the rate limit stays all the same, or a restart would forget it. */
  countedSinceUs: number
}

const hourUs = 3_600_000_000
const pauseMs = 5_000
const batchRows = 10_000

/**
 * What to keep now.
 *
 * Age is what has really passed: who moves the clock on by a month to see tokens end finds the requests of before all the same.
 */
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
 * Trims the ledger now and then until the sandbox closes.
 *
 * A failure stops nothing: the next round comes soon, and what cannot be deleted is no reason to answer nobody.
 *
 * @param retention what is to be kept, as it is now
 */
export async function trimForEver(pool: pg.Pool, retention: () => Retention, closing: AbortSignal): Promise<void> {
  let done = 0
  while (!closing.aborted) {
    const round = await trimLedger(pool, retention(), done).catch((error: unknown) => void complain(error, closing))
    done = round?.done ?? done
    if (round?.isThrough !== false) await delay(pauseMs, undefined, { signal: closing, ref: false }).catch(() => {})
  }
}

/** That the database is away, requests tell. */
function complain(error: unknown, closing: AbortSignal): void {
  if (closing.aborted || asAway(error, false) instanceof DatabaseAway) return
  const reason = error instanceof Error ? error.message : error
  process.stderr.write(`sandbox: the ledger could not be trimmed: ${reason}\n`)
}

/**
 * Deletes one batch of rows that are too old or too many. An applied request with an idempotency key stays: by it the sandbox
 * knows the key again. So does what counts against the rate limit, until it has left the window, and what a fault for so many
 * requests has met, by which it knows how many are left.
 *
 * @param done up to which sequence former rounds have deleted all that may go
 * @returns up to which it is so now, and whether this batch was the last
 */
export async function trimLedger(
  pool: pg.Pool,
  { countedSinceUs, ...retention }: Retention,
  done: number,
): Promise<{ done: number; isThrough: boolean }> {
  const { last, horizon, settled } = await readEnds(pool, { countedSinceUs, ...retention })
  const from = last < done ? 0 : done // a ledger that was emptied begins with 1 again
  if (horizon <= from) return { done: from, isThrough: true }
  const { rowCount } = await pool.query(
    `
    delete from sandbox.ledger where sequence in (
      select sequence from sandbox.ledger
      where sequence > $1 and sequence <= $2
        and not (idempotency_key is not null and (transaction_id is not null or order_id is not null))
        and not (counted and arrived_at > ${time('$3::bigint')})
        and not exists (select from sandbox.faults f where f.id = ledger.fault_id and f.spec ? 'times')
      order by sequence
      limit $4
    )
    `,
    [from, horizon, countedSinceUs, batchRows],
  )
  const isThrough = (rowCount ?? 0) < batchRows
  return { done: isThrough ? Math.max(from, Math.min(horizon, settled)) : from, isThrough }
}

/** The last row's sequence, that of the last that is to go, and of the last that counts against no limit any more; or 0. */
async function readEnds(pool: pg.Pool, { rows, sinceUs, countedSinceUs }: Retention) {
  const lastBefore = (parameter: string) => `
    coalesce((
      select sequence from sandbox.ledger where arrived_at <= ${time(`${parameter}::bigint`)}
      order by arrived_at desc limit 1
    ), 0)`
  const { rows: found } = await pool.query<{ last: string; too_old: string; settled: string }>(
    `
    select coalesce((select max(sequence) from sandbox.ledger), 0) as last,
      ${lastBefore('$1')} as too_old, ${lastBefore('$2')} as settled
    `,
    [sinceUs, countedSinceUs],
  )
  const [last = 0, tooOld = 0, settled = 0] = [found[0]?.last, found[0]?.too_old, found[0]?.settled].map(Number)
  return { last, horizon: Math.max(last - rows, tooOld), settled }
}
