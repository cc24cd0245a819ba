import type pg from 'pg'
import { createPool } from '../postgres/database.ts'
import type { DatabaseUrl } from '../postgres/sessionPool.ts'
import {
  catalogSearchPathSettings,
  connectionsMax,
  daemonSessionNames,
  textFormatSettings,
} from '../postgres/sessionSettings.ts'

/**
 * Planner settings for statements that read a few rows in the order of an index. Rows come and go within a minute, so
 * the planner's statistics are old. Without these settings, the planner would read and sort the whole ledger.
 *
 * A plain index scan clears dead index entries. A bitmap scan reads them again.
 */
export const shortReadPlannerOptions = {
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_bitmapscan: 'off',
} as const

export function openLedgerPool(url: DatabaseUrl, onIdleError: (error: Error) => void): pg.Pool {
  return createPool({
    url,
    name: daemonSessionNames.work,
    connections: connectionsMax.work,
    onIdleError,
    durable: true,
    prepares: true,
    // A statement waits at most 3 s for a locked row.
    settings: {
      ...catalogSearchPathSettings,
      ...shortReadPlannerOptions,
      lock_timeout: '3000',
      extra_float_digits: textFormatSettings.extra_float_digits,
    },
  })
}

/** Short time limits, so that after a lost heartbeat the next one comes in time (src/daemon/heartbeat.ts). */
const beatLimits = { connectMs: 2_000, statementMs: 1_500, answerMs: 2_000 }

/**
 * Heartbeats have their own pool, so that they never wait for other work, a standby or a slow disk. A crash may undo
 * one.
 */
export function openHeartbeatPool(url: DatabaseUrl, onIdleError: (error: Error) => void): pg.Pool {
  return createPool({
    url,
    name: daemonSessionNames.heartbeat,
    connections: connectionsMax.heartbeat,
    onIdleError,
    settings: { ...catalogSearchPathSettings, ...shortReadPlannerOptions, synchronous_commit: 'off' },
    limits: beatLimits,
  })
}
