import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { StoreConfig } from '../config.ts'
import { createChain } from '../ledger/audit/chain.ts'
import { type Erasure, eraseRecords } from '../ledger/audit/eraseRecords.ts'
import { askReload, type InstanceReload } from '../ledger/instances.ts'
import { inLines, lockSubmissions } from '../ledger/keyOrder.ts'
import { type Actor, logAct, logSight, type Sight } from '../ledger/operator/acts.ts'
import { type Adoption, adoptOutbox, adoptService, type ServiceAdoption } from '../ledger/operator/adoptOutbox.ts'
import { discardSubmissions } from '../ledger/operator/discardSubmissions.ts'
import { endOperatorPause, raiseOperatorPause, shortenPauses } from '../ledger/operator/pauses.ts'
import { pollsOf, recoverDoubtful, type SettledDoubt } from '../ledger/operator/recoverDoubtful.ts'
import {
  type Recovered,
  type RecoveredAs,
  type RecoveryTerms,
  recoverHistory,
  sayRestored,
} from '../ledger/operator/recoverHistory.ts'
import { type LostRecord, recoverRecords } from '../ledger/operator/recoverRecords.ts'
import { type Replay, writeReplays } from '../ledger/operator/replaySubmissions.ts'
import { resolveArrived, resolveNotArrived, takeBack } from '../ledger/operator/resolveSubmission.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type PruneDeps, type Pruned, type PruneEnd, type PruneRound, prune } from '../ledger/prune.ts'
import { lockJobsOf, openQueue, type Queue } from '../ledger/queue.ts'
import { believeRefusals } from '../ledger/refusals.ts'
import { renewEnds } from '../ledger/reports.ts'
import { readLongestTimeout } from '../ledger/settings.ts'
import { type Holder, lockTransactionIds, readOtherHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { PauseReason, State } from '../model.ts'
import { commandRowsMax, findGap, type GapDeps, tellGap } from '../outbox/ledgerGap.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { slotReachMs } from '../slotReach.ts'

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
 * What an operator changes; the logs say that it was he, and why. What he changes of submissions is one transaction each under the
 * revision that he saw, makes the report to the outbox due, and lets go who waited behind it.
 */
export interface OperatorChanges {
  /** @param newKeys also of what may have arrived  @returns the ids of those that were queued again */
  replay(replays: readonly Replay[], newKeys: boolean): Promise<string[]>
  resolveArrived(seen: Seen, transaction: TransactionRef): Promise<ArrivalSettled>
  /** @returns whether it keeps its idempotency key; null where it was no longer as it was seen, or nothing is to settle */
  resolveNotArrived(seen: Seen, newKey: boolean): Promise<{ keptKey: boolean } | null>
  /** @returns false where its id is no person's word, or it was no longer as it was seen */
  takeBack(seen: Seen): Promise<boolean>
  /** @returns the ids of those that were discarded */
  discard(seen: readonly (Seen & { state: State })[]): Promise<string[]>
  /** @param forMs null: until somebody resumes */
  pause(forMs: number | null): Promise<void>
  /** @returns what was said when the pause was raised; null where there was none */
  resume(): Promise<string | null>
  /** Lets the other pauses come to their end now. */
  shortenPauses(): Promise<PauseReason[]>
  /** Takes mass refusals at their word for so long. @returns what was said in them */
  believeRefusals(forMs: number): Promise<string[]>
  /** Asks all daemons that live to read their files again. */
  askReload(): Promise<InstanceReload[]>
  adopt(adoption: Adoption): Promise<void>
  adoptService(adoption: Parameters<typeof adoptService>[1]): Promise<ServiceAdoption>
  /** Compares the outbox with the ledger and says how it stands; rows that know less of their ends are told again. @returns how many */
  compare(goOn: () => boolean): Promise<number>
  /** Takes records in that the ledger lost. */
  recover(records: readonly LostRecord[]): Promise<void>
  /**
   * Takes what was queued for what the rows say that it is.
   *
   * @param seenAtMs when that was found of the ledger's history which he has seen
   * @returns false where that has changed since
   */
  recoverDoubtful(records: readonly SettledDoubt[], seenAtMs: number): Promise<boolean>
  /** Takes what was queued for what he says it is, and agrees to the ledger's history. @returns null where what was seen has changed since */
  recoverHistory(terms: RecoveryTerms): Promise<Recovered | null>
  /** Says that he has taken so many rows in that the ledger had lost. */
  noteRecovered(as: RecoveredAs, rows: number): Promise<void>
  /** Says that the ledger was put back as it had been: everybody stops. */
  sayRestored(): Promise<void>
  /** Logs that he saw values of records. */
  noteSight(sight: Sight): Promise<void>
  /** Erases what may be a person's data. @returns the ids of those that were erased */
  erase(erasures: readonly Erasure[]): Promise<string[]>
  /** Lets go what the retention of this configuration says. */
  prune(round: Pick<PruneRound, 'goOn' | 'onProgress'>): Promise<PruneEnd>
}

export interface OperatorChangesDeps {
  ledger: pg.Pool
  outbox: PruneDeps['outbox'] & GapDeps['outbox']
  config: StoreConfig
  actor: Actor
}

/** Where no daemon has said how long its requests may take. */
const usualTimeoutMs = 30_000

/** What this person changes, for this reason. */
export function operatorChanges({ ledger, outbox, config, actor }: OperatorChangesDeps): OperatorChanges {
  const { stateDatabaseUrl, keyOnFailure, retention, rateLimit } = config
  /**
   * Runs `work` with these records, their polls, their lines, and ids that are to be theirs locked, in the one order, and
   * lets the lines' heads go after it.
   */
  const inLine = <T>(
    seen: readonly { id: string; key: string | null }[],
    work: (db: Database) => Promise<T>,
    ids: readonly TransactionRef[] = [],
  ) =>
    inTransaction(ledger, async (db) => {
      await lockJobsOf(db, seen)
      if (ids.length > 0) await lockTransactionIds(db, ids)
      const locked = await lockSubmissions(db, seen)
      // A replay can give a record another key: the lines of both are ours.
      return inLines(db, [...seen, ...locked], keyOnFailure, () => work(db))
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
    replay: (replays, newKeys) => inLine(replays, (db) => writeReplays(db, replays, { newKeys, actor })),
    resolveArrived: (seen, transaction) =>
      withQueue((queue) =>
        inLine(
          [seen],
          async (db): Promise<ArrivalSettled> => {
            const by = await readOtherHolder(db, transaction, seen.id)
            if (by) return { kind: 'taken', by }
            const { id, revision } = seen
            const arrival = { id, revision, transactionId: transaction.transactionId, jobId: randomUUID() }
            const [settled] = await resolveArrived(db, [arrival], { how: 'resolved', actor })
            if (settled === undefined) return { kind: 'changed' }
            if (settled.formerJobId) await queue.remove(db, [settled.formerJobId])
            await queue.insert(db, pollsOf([settled]))
            return { kind: 'settled', tracked: settled.tracked }
          },
          [transaction],
        ),
      ),
    resolveNotArrived: (seen, newKey) =>
      withQueue((queue) =>
        inLine([seen], async (db) => {
          const settled = await resolveNotArrived(db, seen, { idempotencyKey: randomUUID(), newKey, actor })
          if (settled?.formerJobId) await queue.remove(db, [settled.formerJobId])
          return settled
        }),
      ),
    takeBack: (seen) =>
      withQueue((queue) =>
        inLine([seen], async (db) => {
          const taken = await takeBack(db, seen, actor)
          if (taken?.formerJobId) await queue.remove(db, [taken.formerJobId])
          return taken !== null
        }),
      ),
    async discard(seen) {
      const discardWith = (queue: Queue | null) =>
        inLine(seen, async (db) => {
          const discarded = await discardSubmissions(db, seen, actor)
          const jobs = discarded.flatMap(({ formerJobId }) => formerJobId ?? [])
          if (jobs.length > 0) await queue?.remove(db, jobs)
          return discarded.map(({ id }) => id)
        })
      return seen.some(({ state }) => state === 'accepted') ? withQueue(discardWith) : discardWith(null)
    },
    pause: (forMs) => raiseOperatorPause(ledger, actor, forMs),
    resume: () => endOperatorPause(ledger, actor),
    shortenPauses: () => shortenPauses(ledger, actor),
    believeRefusals: (forMs) =>
      inTransaction(ledger, async (db) => {
        const said = await believeRefusals(db, forMs)
        if (said.length > 0) await logAct(db, actor, 'resume --believe-refusals', { said })
        return said
      }),
    askReload: () =>
      inTransaction(ledger, async (db) => {
        const instances = await askReload(db)
        await logAct(db, actor, 'reload', { instances: instances.map(({ id }) => id) })
        return instances
      }),
    adopt: (adoption) => inTransaction(ledger, (db) => adoptOutbox(db, adoption, actor)),
    adoptService: (adoption) => inTransaction(ledger, (db) => adoptService(db, adoption, actor)),
    async compare(goOn) {
      let toldAgain = 0
      const gap = await findGap({
        async tellAgain(outboxIds) {
          toldAgain += await renewEnds(ledger, outboxIds, actor.who)
        },
        ...{ outbox, goOn: async () => goOn(), rowsMax: commandRowsMax, begun: null },
      })
      await tellGap(ledger, gap)
      return toldAgain
    },
    recover: (records) =>
      withQueue((queue) => inTransaction(ledger, (db) => recoverRecords(db, records, { queue, actor, keyOnFailure }))),
    recoverDoubtful: (records, seenAtMs) =>
      withQueue((queue) =>
        inTransaction(ledger, (db) => recoverDoubtful(db, records, { seenAtMs, queue, actor, keyOnFailure })),
      ),
    recoverHistory: (terms) => inTransaction(ledger, (db) => recoverHistory(db, terms, actor)),
    noteRecovered: (as, rows) => logAct(ledger, actor, 'recover', { as, rows }),
    sayRestored: () =>
      inTransaction(ledger, async (db) => {
        const timeoutMs = (await readLongestTimeout(db)) ?? usualTimeoutMs
        await sayRestored(db, slotReachMs(rateLimit.windowMs, timeoutMs), actor)
      }),
    noteSight: (sight) => logSight(ledger, actor, sight),
    erase: (erasures) => inTransaction(ledger, (db) => eraseRecords(db, erasures, actor)),
    async prune({ goOn, onProgress }) {
      await createChain(ledger).runOnce(goOn) // what is not in the chain yet is not deleted
      let pruned: Pruned | null = null
      try {
        return await prune(
          { ledger, outbox },
          {
            ...{ retention, turn: 'wait', goOn },
            onProgress(soFar) {
              pruned = soFar
              onProgress(soFar)
            },
          },
        )
      } finally {
        if (pruned !== null) await logAct(ledger, actor, 'prune', { ...retention, ...(pruned as Pruned) })
      }
    },
  }
}
