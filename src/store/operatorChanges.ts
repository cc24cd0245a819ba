import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { StoreConfig } from '../config.ts'
import { inLines, lockSubmissions } from '../ledger/keyOrder.ts'
import { lockJobsOf } from '../ledger/lockJobs.ts'
import { discardSubmissions } from '../ledger/operator/discardSubmissions.ts'
import { type Replay, writeReplays } from '../ledger/operator/replaySubmissions.ts'
import { resolveArrived, resolveNotArrived, takeBack } from '../ledger/operator/resolveSubmission.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { openQueue, type Queue } from '../ledger/queue.ts'
import { type Holder, lockTransactionIds, readOtherHolder, type TransactionRef } from '../ledger/transactionIds.ts'
import type { State } from '../model.ts'
import { type Database, inTransaction } from '../postgres/database.ts'

/** A submission as the operator saw it. */
export type Seen = Pick<ListedSubmission, 'id' | 'revision' | 'key'>

/** What came of saying that a submission arrived. */
export type ArrivalSettled =
  | { kind: 'settled'; tracked: boolean }
  /** The ledger has that transaction under another submission. */
  | { kind: 'taken'; by: Holder }
  /** It was no longer as it was seen, or there is nothing to settle. */
  | { kind: 'changed' }

/**
 * What an operator changes of submissions. Each is one transaction under the revision that the operator saw, appends to
 * the log, makes the report to the outbox due, and lets go who waited behind it.
 */
export interface OperatorChanges {
  /** @param newKeys also of what may have arrived  @returns the ids of those that were queued again */
  replay(replays: readonly Replay[], newKeys: boolean): Promise<string[]>
  /** Another submission than this one that the ledger has under the transaction's id; null where there is none. */
  readOtherHolder(seen: Seen, transaction: TransactionRef): Promise<Holder | null>
  resolveArrived(seen: Seen, transaction: TransactionRef): Promise<ArrivalSettled>
  /** @returns whether it keeps its idempotency key; null where it was no longer as it was seen, or nothing is to settle */
  resolveNotArrived(seen: Seen, newKey: boolean): Promise<{ keptKey: boolean } | null>
  /** @returns false where its id is no person's word, or it was no longer as it was seen */
  takeBack(seen: Seen): Promise<boolean>
  /** @returns the ids of those that were discarded */
  discard(seen: readonly (Seen & { state: State })[], reason: string): Promise<string[]>
}

/** @param who for the event log */
export function operatorChanges(
  pool: pg.Pool,
  { stateDatabaseUrl, keyOnFailure, who }: StoreConfig & { who: string },
): OperatorChanges {
  /**
   * Runs `work` with these records, their polls, their lines, and ids that are to be theirs locked, in the one order, and
   * lets the lines' heads go after it.
   */
  const inLine = <T>(
    seen: readonly { id: string; key: string | null }[],
    work: (db: Database) => Promise<T>,
    ids: readonly TransactionRef[] = [],
  ) =>
    inTransaction(pool, async (db) => {
      await lockJobsOf(db, seen)
      if (ids.length > 0) await lockTransactionIds(db, ids)
      await lockSubmissions(db, seen)
      return inLines(db, seen, keyOnFailure, () => work(db))
    })

  async function withQueue<T>(work: (queue: Queue) => Promise<T>): Promise<T> {
    const queue = await openQueue(stateDatabaseUrl, () => {}) // the next statement says so
    try {
      return await work(queue)
    } finally {
      await queue.close()
    }
  }

  return {
    replay: (replays, newKeys) => inLine(replays, (db) => writeReplays(db, replays, { newKeys, who })),
    readOtherHolder: (seen, transaction) => readOtherHolder(pool, transaction, seen.id),
    resolveArrived: (seen, transaction) =>
      withQueue((queue) =>
        inLine(
          [seen],
          async (db): Promise<ArrivalSettled> => {
            const by = await readOtherHolder(db, transaction, seen.id)
            if (by) return { kind: 'taken', by }
            const jobId = randomUUID()
            const { transactionId } = transaction
            const settled = await resolveArrived(db, seen, { transactionId, jobId, who })
            if (settled === null) return { kind: 'changed' }
            if (settled.formerJobId) await queue.remove(db, [settled.formerJobId])
            if (settled.tracked) await queue.insert(db, [{ jobId, submissionId: seen.id, inMs: 0, rarely: false }])
            return { kind: 'settled', tracked: settled.tracked }
          },
          [transaction],
        ),
      ),
    resolveNotArrived: (seen, newKey) =>
      withQueue((queue) =>
        inLine([seen], async (db) => {
          const settled = await resolveNotArrived(db, seen, { idempotencyKey: randomUUID(), newKey, who })
          if (settled?.formerJobId) await queue.remove(db, [settled.formerJobId])
          return settled
        }),
      ),
    takeBack: (seen) =>
      withQueue((queue) =>
        inLine([seen], async (db) => {
          const taken = await takeBack(db, seen, who)
          if (taken?.formerJobId) await queue.remove(db, [taken.formerJobId])
          return taken !== null
        }),
      ),
    async discard(seen, reason) {
      const discardWith = (queue: Queue | null) =>
        inLine(seen, async (db) => {
          const discarded = await discardSubmissions(db, seen, { reason, who })
          const jobs = discarded.flatMap(({ formerJobId }) => formerJobId ?? [])
          if (jobs.length > 0) await queue?.remove(db, jobs)
          return discarded.map(({ id }) => id)
        })
      return seen.some(({ state }) => state === 'accepted') ? withQueue(discardWith) : discardWith(null)
    },
  }
}
