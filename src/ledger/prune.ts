import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { begin, type Database } from '../postgres/database.ts'
import { waitedForLock, wasCanceled } from '../postgres/sqlState.ts'
import {
  emptyBatch,
  firstBatchRows,
  forgetGone,
  nextBatchRows,
  pruneBatch,
  type Retention,
  statementMaxMs,
  takeLooks,
} from './retention.ts'

/** What a round has done so far. */
export interface Pruned {
  /** Submissions that were deleted. */
  submissions: number
  /** Submissions whose payload, body and result were deleted. */
  emptied: number
  /** Ids that need not be known any more, because their rows are gone from the outbox. */
  forgotten: number
}

/**
 * How a round ended: `through`; `begun`: interrupted with more to do; `elsewhere`: another instance is pruning, or
 * capturing without a break.
 */
export type PruneEnd = 'through' | 'begun' | 'elsewhere'

export interface PruneRound {
  retention: Retention
  /** What to do while another instance prunes: a daemon leaves it to that one, a command waits for its turn. */
  turn: 'try' | 'wait'
  /** Asked between batches: false ends the round. */
  goOn(): boolean
  onProgress(pruned: Pruned): void
}

type Step = (db: Database, limit: number) => Promise<number>
type Batch = { kind: 'done'; rows: number } | { kind: 'too-slow' } | { kind: 'elsewhere' }

/** After each batch, so that the others have the ledger (pages, locks, disk) most of the time. */
const pauseMs = 50

/** How long to wait for the turn. */
const turnMaxMs = 1_000

export interface PruneDeps {
  ledger: pg.Pool
  outbox: {
    /** Those of these ids that have a row. */
    findPresent(outboxIds: readonly string[]): Promise<ReadonlySet<string>>
  }
}

/**
 * Deletes and empties what is due in batches, each in a transaction of its own that holds its locks for less than 100
 * ms. Interrupted at any moment, it leaves whole submissions or none of them. Then forgets ids whose rows are gone.
 */
export async function prune(
  { ledger, outbox }: PruneDeps,
  { retention, turn, goOn, onProgress }: PruneRound,
): Promise<PruneEnd> {
  const pruned: Pruned = { submissions: 0, emptied: 0, forgotten: 0 }
  const { days, payloadDays } = retention
  const steps: { step: Step; what: 'submissions' | 'emptied' }[] = []
  // Deletes first: what is deleted need not be emptied.
  if (days !== null)
    steps.push({ what: 'submissions', step: (db, limit) => pruneBatch(db, { olderThanDays: days, limit }) })
  if (payloadDays !== null)
    steps.push({ what: 'emptied', step: (db, limit) => emptyBatch(db, { olderThanDays: payloadDays, limit }) })
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

/** Ids looked for at once: a few milliseconds of the ERP's database. */
const looksMax = 500

/** Locks nothing, because the other database may take its time to answer. */
async function forget(
  { ledger, outbox, goOn }: Pick<PruneRound, 'goOn'> & PruneDeps,
  onRows: (rows: number) => void,
): Promise<PruneEnd> {
  while (goOn()) {
    const { outboxIds, forgotten } = await takeLooks(ledger, looksMax)
    const present = outboxIds.length === 0 ? new Set<string>() : await outbox.findPresent(outboxIds)
    const rows = forgotten + (outboxIds.length === 0 ? 0 : await forgetGone(ledger, outboxIds, present))
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
  let limit = firstBatchRows
  while (goOn()) {
    const beganMs = performance.now()
    const batch = await tryBatch(ledger, turn, step, limit)
    if (batch.kind === 'elsewhere') return 'elsewhere'
    if (batch.kind === 'done') {
      if (batch.rows > 0) onRows(batch.rows)
      if (batch.rows < limit) return 'through'
    }
    limit = nextBatchRows(limit, batch.kind === 'done' ? performance.now() - beganMs : null)
    await setTimeout(pauseMs)
  }
  return 'begun'
}

/** Only a batch of one row may take as long as it needs: on a disk that slow the row would otherwise stay for ever. */
async function tryBatch(ledger: pg.Pool, turn: PruneRound['turn'], step: Step, limit: number): Promise<Batch> {
  await using transaction = await begin(ledger)
  const { db } = transaction
  if (!(await takeTurn(db, turn))) return { kind: 'elsewhere' }
  if (limit > 1) await db.query(`set local statement_timeout = ${statementMaxMs}`)
  try {
    const rows = await step(db, limit)
    await transaction.commit()
    return { kind: 'done', rows }
  } catch (error) {
    if (wasCanceled(error) && limit > 1) return { kind: 'too-slow' }
    throw error
  }
}

/** 7165: one instance prunes at a time. 7161: rows enter the ledger and leave it one instance at a time. */
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
    if (waitedForLock(error)) return false
    throw error
  }
}
