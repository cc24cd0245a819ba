import type pg from 'pg'
import { createPool } from '../postgres/database.ts'
import type { DatabaseAddress } from '../postgres/databaseAddress.ts'
import { catalogPathSettings, connectionsMax, daemonSessions, textSettings } from '../postgres/sessionSettings.ts'

/**
 * How the daemon's statements on the ledger are planned. Each reads a few rows in the order of an index. Thousands
 * of rows come and go within a minute, so the statistics are always old; by them the planner would read and sort
 * the whole ledger at every look (half of the server's time in bench:engine).
 *
 * No bitmaps: rows that pass through leave dead index entries. A plain index scan clears them, a bitmap scan reads
 * all of them each time (a quarter of the server's time).
 */
export const shortReads = {
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
} as const

/**
 * Opens the sessions in which a daemon works on the ledger. @param onIdleError a connection broke; it is opened
 * again
 */
export function openLedgerPool(url: string | DatabaseAddress, onIdleError: (error: Error) => void): pg.Pool {
  return createPool({
    url,
    name: daemonSessions.work,
    connections: connectionsMax.work,
    onIdleError,
    durable: true,
    prepares: true,
    // A statement waits for a locked row for 3 s at most.
    settings: {
      ...catalogPathSettings,
      ...shortReads,
      lock_timeout: '3000',
      extra_float_digits: textSettings.extra_float_digits,
    },
  })
}

/** Short enough that one beat may be lost (src/daemon/heartbeat.ts). */
const beatLimits = { connectMs: 2_000, statementMs: 2_500, answerMs: 3_000 }

/**
 * Opens the sessions for signs of life. They wait neither for other work nor for a standby or a slow disk. A sign
 * of life that a crash takes back is not a loss.
 */
export function openHeartbeatPool(url: string | DatabaseAddress, onIdleError: (error: Error) => void): pg.Pool {
  return createPool({
    url,
    name: daemonSessions.heartbeat,
    connections: connectionsMax.heartbeat,
    onIdleError,
    settings: { ...catalogPathSettings, synchronous_commit: 'off' },
    limits: beatLimits,
  })
}
