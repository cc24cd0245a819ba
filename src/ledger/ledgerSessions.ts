import type pg from 'pg'
import { createPool } from '../postgres/database.ts'
import type { DatabaseAddress } from '../postgres/databaseAddress.ts'
import { asText, connectionsMax, daemonSessions, ownNames } from '../postgres/sessionSettings.ts'

/**
 * How the daemon's statements on the ledger are planned. Each reads a few rows in an index's order, and there is an
 * index for each. The statistics are always of another hour, because thousands of rows come and go within a minute: by
 * them the planner would read the whole ledger and sort it at every look (half of the server's time in bench:engine).
 *
 * No bitmaps: rows pass through the small indexes fast and leave dead entries. A plain index scan clears them as it
 * meets them, a bitmap scan reads all of them each time (a quarter of the server's time).
 */
export const shortReads = {
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
} as const

/** Opens the sessions in which a daemon works on the ledger. @param onIdleError a connection broke; it is opened again */
export function openLedgerPool(url: string | DatabaseAddress, onIdleError: (error: Error) => void): pg.Pool {
  return createPool({
    url,
    name: daemonSessions.work,
    connections: connectionsMax.work,
    onIdleError,
    durable: true,
    prepares: true,
    // One row that another session has locked holds up the statement that needs it for 3 s at most.
    settings: { ...ownNames, ...shortReads, lock_timeout: '3000', extra_float_digits: asText.extra_float_digits },
  })
}

/** How long a beat may take: the time between two leaves room for one that is lost (src/daemon/heartbeat.ts). */
const beatLimits = { connectMs: 2_000, statementMs: 2_500, answerMs: 3_000 }

/**
 * Opens the sessions in which an instance says that it lives: no other work makes it wait, and neither a standby nor a
 * disk that is away does. A sign of life that a crash takes back is no loss.
 */
export function openHeartbeatPool(url: string | DatabaseAddress, onIdleError: (error: Error) => void): pg.Pool {
  return createPool({
    url,
    name: daemonSessions.heartbeat,
    connections: connectionsMax.heartbeat,
    onIdleError,
    settings: { ...ownNames, synchronous_commit: 'off' },
    limits: beatLimits,
  })
}
