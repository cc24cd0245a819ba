import type pg from 'pg'
import type { Submission, Transition } from '../record.ts'
import { type Database, inTransaction } from './database.ts'
import { forgetProblems } from './ledger/instanceProblems.ts'
import { type KeyOnFailure, lockLines, readWaitingKeys, releaseHeads } from './ledger/keyLine.ts'
import type { RaisedProblem } from './ledger/problems.ts'
import { findStuck } from './ledger/stuck.ts'
import { forgetInstances, readAbandoned, readOverdue, renewLostJobs } from './ledger/takeover.ts'
import { type Queue, queueSchema } from './queue.ts'
import type { WrittenStep } from './work.ts'

/** Keeps the ledger, the queue and the instances in step with each other. */
export interface Upkeep {
  /** What dead instances were sending. */
  readAbandoned(): Promise<Submission[]>
  /** What the ledger says this instance is sending, for longer than any request lasts. */
  readOverdue(): Promise<Submission[]>
  writeSteps(transitions: readonly Transition[]): Promise<WrittenStep[]>
  /** Gives tracked submissions without a live job a new one. @returns how many */
  renewLostJobs(): Promise<number>
  /**
   * Lets records go that wait though nothing before them blocks any more: KEY_ON_FAILURE may have changed since.
   *
   * @returns how many
   */
  releaseLines(): Promise<number>
  /** Forgets instances that have long been silent, and the problems of those that are. */
  forgetInstances(): Promise<void>
  /** What there is to say of transactions that the service does not end. */
  findStuck(stuckAfterMs: number): Promise<Omit<RaisedProblem, 'kind'>[]>
}

export interface UpkeepDeps {
  pool: pg.Pool
  queue: Queue
  instance: { id: string }
  /** Longer than any request can be in hand. */
  overdueMs: number
  keyOnFailure: KeyOnFailure
  writeSteps(db: Database, transitions: readonly Transition[]): Promise<WrittenStep[]>
}

const linesMost = 1_000

export function createUpkeep(deps: UpkeepDeps): Upkeep {
  const { pool, queue, instance, overdueMs, keyOnFailure, writeSteps } = deps
  return {
    readAbandoned: () => readAbandoned(pool, instance.id),
    readOverdue: () => readOverdue(pool, instance.id, overdueMs),
    writeSteps: (transitions) => inTransaction(pool, (db) => writeSteps(db, transitions)),
    renewLostJobs: () =>
      inTransaction(pool, async (db) => {
        const renewed = await renewLostJobs(db, queueSchema)
        if (renewed.length > 0)
          await queue.insert(
            db,
            renewed.map((each) => ({ ...each, inMs: 0 })),
          )
        return renewed.length
      }),
    releaseLines: () =>
      inTransaction(pool, async (db) => {
        const keys = await readWaitingKeys(db, linesMost)
        if (keys.length === 0) return 0
        await lockLines(db, keys)
        return releaseHeads(db, keys, keyOnFailure)
      }),
    async forgetInstances() {
      await forgetInstances(pool)
      await forgetProblems(pool)
    },
    findStuck: (stuckAfterMs) => findStuck(pool, stuckAfterMs),
  }
}
