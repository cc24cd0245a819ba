import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { type Database, inTransaction } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'
import {
  emptyOldSubmissions,
  forgetGoneRows,
  pruneOldSubmissions,
  type Retention,
  takeDueRowChecks,
} from './retention.ts'

export interface Pruned {
  submissions: number
  /** Records that lost payload, body and result. */
  emptied: number
  /** Ids whose rows are gone from the outbox. */
  forgotten: number
}

/** `begun` means that there is more to do, `elsewhere` that another instance prunes, or captures without a break. */
export type PruneEnd = 'through' | 'begun' | 'elsewhere'

export interface PruneRound {
  retention: Retention
  /** A command waits for its turn, a daemon does not. */
  turn: 'try' | 'wait'
  /** False ends the round between two batches. */
  goOn(): boolean
  onProgress(pruned: Pruned): void
}

type Step = (db: Database) => Promise<number>

/** Takes some 4 ms: 370 rows a second with the pauses. */
const batchRows = 20

/** Leaves the ledger to others most of the time. */
const pauseMs = 50

const turnMaxMs = 1_000

export interface PruneDeps {
  ledger: pg.Pool
  outbox: {
    findExistingRows(outboxIds: readonly string[]): Promise<ReadonlySet<string>>
  }
}

/**
 * Deletes and empties due records, in short transactions. Then forgets ids whose rows
 * are gone.
 */
export async function pruneRound(
  { ledger, outbox }: PruneDeps,
  { retention, turn, goOn, onProgress }: PruneRound,
): Promise<PruneEnd> {
  const pruned: Pruned = { submissions: 0, emptied: 0, forgotten: 0 }
  const { days, payloadDays } = retention
  const steps: { step: Step; what: 'submissions' | 'emptied' }[] = []
  // Deletes first, because deleted records need not be emptied.
  if (days !== null)
    steps.push({
      what: 'submissions',
      step: (db) => pruneOldSubmissions(db, { olderThanDays: days, limit: batchRows }),
    })
  if (payloadDays !== null)
    steps.push({
      what: 'emptied',
      step: (db) => emptyOldSubmissions(db, { olderThanDays: payloadDays, limit: batchRows }),
    })
  for (const { step, what } of steps) {
    const end = await repeat({ ledger, turn, goOn }, step, (rows) => {
      pruned[what] += rows
      onProgress({ ...pruned })
    })
    if (end !== 'through') return end
  }
  return forget({ ledger, outbox, goOn }, (rows) => {
    pruned.forgotten += rows
    onProgress({ ...pruned })
  })
}

/** Takes a few milliseconds of the ERP's database. */
const looksMax = 500

/** Holds no lock, because the ERP's database may be slow. */
async function forget(
  { ledger, outbox, goOn }: Pick<PruneRound, 'goOn'> & PruneDeps,
  onRows: (rows: number) => void,
): Promise<PruneEnd> {
  while (goOn()) {
    const { outboxIds, forgotten } = await takeDueRowChecks(ledger, looksMax)
    const present = outboxIds.length === 0 ? new Set<string>() : await outbox.findExistingRows(outboxIds)
    const rows = forgotten + (outboxIds.length === 0 ? 0 : await forgetGoneRows(ledger, outboxIds, present))
    if (rows > 0) onRows(rows)
    if (outboxIds.length + forgotten < looksMax) return 'through'
    await setTimeout(pauseMs)
  }
  return 'begun'
}

async function repeat(
  { ledger, turn, goOn }: Pick<PruneRound, 'turn' | 'goOn'> & { ledger: pg.Pool },
  step: Step,
  onRows: (rows: number) => void,
): Promise<PruneEnd> {
  while (goOn()) {
    const rows = await inTransaction(ledger, async (db) => ((await takeTurn(db, turn)) ? step(db) : null))
    if (rows === null) return 'elsewhere'
    if (rows > 0) onRows(rows)
    if (rows < batchRows) return 'through'
    await setTimeout(pauseMs)
  }
  return 'begun'
}

/** Locks 7165, because one instance prunes, and 7161, because rows enter or leave the ledger one instance at a time. */
async function takeTurn(db: Database, turn: PruneRound['turn']): Promise<boolean> {
  if (turn === 'try') {
    const { rows } = await db.query<{ mine: boolean }>('select pg_try_advisory_xact_lock(7165) as mine')
    if (!rows[0]?.mine) return false
  }
  await db.query(`set local lock_timeout = ${turnMaxMs}`)
  try {
    if (turn === 'wait') await db.query('select pg_advisory_xact_lock(7165)')
    await db.query('select pg_advisory_xact_lock(7161)')
    return true
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}
