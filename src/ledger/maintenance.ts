import type pg from 'pg'
import type { RaisedProblem, Submission, Transition, WrittenStep } from '../model.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { deleteStaleInstances, readForgotten, readOrphaned, recreateMissingJobs } from './instances.ts'
import { type KeyOnFailure, lockKeys, readWaitingKeys, releaseNext } from './keyOrder.ts'
import { prunePeriods, type Span, writePeriods, writeRequestHours } from './periods.ts'
import { forgetProblems } from './problems.ts'
import { type Queue, queueSchema } from './queue.ts'
import { pruneRequestCounts } from './requestCounts.ts'
import { findStuck } from './transactions.ts'

/** Keeps the ledger, the queue and the instances in step with each other. */
export interface Maintenance {
  /** What dead instances were sending. */
  readOrphaned(): Promise<Submission[]>
  /** What the ledger says this instance is sending, and that it does not have in hand. */
  readForgotten(holds: (submission: Pick<Submission, 'id' | 'claimId'>) => boolean): Promise<Submission[]>
  writeSteps(transitions: readonly Transition[]): Promise<WrittenStep[]>
  /** Gives tracked submissions without a live job a new one. @returns how many */
  recreateMissingJobs(): Promise<number>
  /**
   * Lets records go that wait though nothing before them blocks any more: KEY_ON_FAILURE may have changed since.
   *
   * @returns how many
   */
  releaseWaitingKeys(): Promise<number>
  /** Forgets instances that have long been silent, and the problems of those that are. */
  deleteStaleInstances(): Promise<void>
  /** Deletes counts of requests that nobody asks for any more. */
  pruneRequestCounts(): Promise<void>
  /** Writes what became of records in the minutes, or hours, that are over. */
  writePeriods(span: Span, outboxWaiting: number | null): Promise<{ written: number; hasMore: boolean }>
  /** Adds up the requests of the hours that are over. */
  writeRequestHours(): Promise<void>
  /** Deletes the minutes and hours that nobody asks for any more. */
  prunePeriods(): Promise<void>
  /** What there is to say of transactions that the service does not end. */
  findStuck(stuckAfterMs: number): Promise<Omit<RaisedProblem, 'kind'>[]>
}

export interface MaintenanceDeps {
  pool: pg.Pool
  queue: Queue
  instance: { id: string }
  keyOnFailure: KeyOnFailure
  writeSteps(db: Database, transitions: readonly Transition[]): Promise<WrittenStep[]>
}

const linesMost = 1_000

export function createMaintenance(deps: MaintenanceDeps): Maintenance {
  const { pool, queue, instance, keyOnFailure, writeSteps } = deps
  return {
    readOrphaned: () => readOrphaned(pool, instance.id),
    readForgotten: (holds) => readForgotten(pool, instance.id, holds),
    writeSteps: (transitions) => inTransaction(pool, (db) => writeSteps(db, transitions)),
    recreateMissingJobs: () =>
      inTransaction(pool, async (db) => {
        const recreated = await recreateMissingJobs(db, queueSchema)
        if (recreated.length > 0)
          await queue.insert(
            db,
            recreated.map((each) => ({ ...each, inMs: 0 })),
          )
        return recreated.length
      }),
    releaseWaitingKeys: () =>
      inTransaction(pool, async (db) => {
        const keys = await readWaitingKeys(db, linesMost)
        if (keys.length === 0) return 0
        await lockKeys(db, keys)
        return releaseNext(db, keys, keyOnFailure)
      }),
    async deleteStaleInstances() {
      await deleteStaleInstances(pool)
      await forgetProblems(pool)
    },
    pruneRequestCounts: () => pruneRequestCounts(pool),
    writePeriods: (span, outboxWaiting) => writePeriods(pool, span, outboxWaiting),
    writeRequestHours: () => writeRequestHours(pool),
    prunePeriods: () => prunePeriods(pool),
    findStuck: (stuckAfterMs) => findStuck(pool, stuckAfterMs),
  }
}
