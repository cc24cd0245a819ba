import { randomUUID } from 'node:crypto'
import type { StoreConfig } from '../config.ts'
import type { PauseReason, Problem } from '../record.ts'
import * as budget from './budget.ts'
import { createPool, type Database, inTransaction, withDatabase } from './database.ts'
import { lockLines, releaseHeads } from './ledger/keyLine.ts'
import { readProblems } from './ledger/problems.ts'
import { assertMigrated } from './migrate.ts'
import { discardSubmissions } from './operator/discardSubmissions.ts'
import { findSubmissions, type SubmissionReference } from './operator/findSubmissions.ts'
import { endOperatorPause, raiseOperatorPause, shortenPauses } from './operator/pauses.ts'
import { type Activity, readActivity } from './operator/readActivity.ts'
import { type Dossier, readDossier } from './operator/readDossier.ts'
import { type Replay, type ReplayableSubmission, readReplayable, writeReplays } from './operator/replaySubmissions.ts'
import { resolveArrived, resolveNotArrived } from './operator/resolveSubmission.ts'
import { type ListedSubmission, type SubmissionFilter, selectSubmissions } from './operator/selectSubmissions.ts'
import { type Outbox, type OutboxTable, openOutbox } from './outbox.ts'
import { openQueue } from './queue.ts'
import { type LedgerSnapshot, readSnapshot } from './snapshot.ts'

type Seen = Pick<ListedSubmission, 'id' | 'revision' | 'key'>

/**
 * The databases, as an operator's commands use them. Whatever changes a submission is one transaction under the revision
 * that the operator saw, appends to the log, makes the report to the outbox due, and lets go who waited behind it.
 */
export interface OperatorStore extends AsyncDisposable {
  /** The ERP's database is first asked when one of these is called. */
  outbox: Pick<Outbox, 'readRecord' | 'readNew' | 'backlog'>
  select(filter: SubmissionFilter, limit: number): Promise<ListedSubmission[]>
  find(reference: SubmissionReference, limit: number): Promise<ListedSubmission[]>
  readDossier(id: string): Promise<Dossier | null>
  readReplayable(seen: readonly Seen[]): Promise<ReplayableSubmission[]>
  /** @returns the ids of those that were queued again */
  replay(replays: readonly Replay[]): Promise<string[]>
  /** @returns null where it was no longer as it was seen */
  resolveArrived(seen: Seen, transactionId: string): Promise<{ tracked: boolean } | null>
  /** @returns whether it was still as it was seen */
  resolveNotArrived(seen: Seen): Promise<boolean>
  /** @returns the ids of those that were discarded */
  discard(seen: readonly Seen[], reason: string): Promise<string[]>
  pause(detail: string, forMs: number | null): Promise<void>
  /** @returns what was said when the pause was raised; null where there was none */
  resume(): Promise<string | null>
  shortenPauses(): Promise<PauseReason[]>
  readSnapshot(): Promise<LedgerSnapshot>
  readActivity(): Promise<Activity>
  /** What stands, the oldest first. */
  readProblems(limit: number): Promise<Problem[]>
}

/**
 * Opens the ledger for a command.
 *
 * @param who for the event log
 * @param outboxTable how to read the outbox, asked when it is first used: a broken description keeps nobody from pausing
 * @throws DatabaseUnusable when it cannot be reached or has not been migrated
 */
export async function openOperatorStore(
  config: StoreConfig,
  who: string,
  outboxTable: () => OutboxTable | string,
): Promise<OperatorStore> {
  const onIdleError = () => {} // the next statement says so
  const { stateDatabaseUrl, databaseUrl, keyOnFailure } = config
  const pool = createPool({ url: stateDatabaseUrl, name: 'outboxd command', connections: 2, onIdleError })
  const outboxPool = createPool({ url: databaseUrl, name: 'outboxd command outbox', connections: 2, onIdleError })
  const close = async () => void (await Promise.allSettled([pool.end(), outboxPool.end()]))
  let outbox: Outbox | undefined
  const onOutbox = <T>(work: (outbox: Outbox) => Promise<T>) =>
    withDatabase('DATABASE_URL', databaseUrl, async () => {
      outbox ??= openOutbox(outboxPool, outboxTable(), config.payloadMaxBytes, pool)
      return work(outbox)
    })

  /** Runs `work` with the lines of these records locked, and lets their heads go after it. */
  const inLine = <T>(seen: readonly { key: string | null }[], work: (db: Database) => Promise<T>) =>
    inTransaction(pool, async (db) => {
      const keys = seen.flatMap(({ key }) => (key === null ? [] : [key]))
      if (keys.length > 0) await lockLines(db, keys)
      const result = await work(db)
      if (keys.length > 0) await releaseHeads(db, [...new Set(keys)], keyOnFailure)
      return result
    })

  try {
    await withDatabase('STATE_DATABASE_URL', stateDatabaseUrl, () => assertMigrated(pool, stateDatabaseUrl))
  } catch (error) {
    await close()
    throw error
  }
  return {
    outbox: {
      readRecord: (outboxId) => onOutbox((erp) => erp.readRecord(outboxId)),
      readNew: (limit) => onOutbox((erp) => erp.readNew(limit)),
      backlog: () => onOutbox((erp) => erp.backlog()),
    },
    select: (filter, limit) => selectSubmissions(pool, filter, limit),
    find: (reference, limit) => findSubmissions(pool, reference, limit),
    readDossier: (id) => readDossier(pool, id, keyOnFailure),
    readReplayable: (seen) => readReplayable(pool, seen),
    replay: (replays) => inLine(replays, (db) => writeReplays(db, replays, who)),
    async resolveArrived(seen, transactionId) {
      const queue = await openQueue(stateDatabaseUrl, onIdleError)
      try {
        return await inLine([seen], async (db) => {
          const jobId = randomUUID()
          const resolved = await resolveArrived(db, seen, { transactionId, jobId, who })
          if (resolved?.tracked) await queue.insert(db, [{ jobId, submissionId: seen.id, inMs: 0 }])
          return resolved
        })
      } finally {
        await queue.close()
      }
    },
    resolveNotArrived: (seen) =>
      inLine([seen], async (db) => {
        const resolved = await resolveNotArrived(db, seen, { idempotencyKey: randomUUID(), who })
        return resolved !== null
      }),
    discard: (seen, reason) => inLine(seen, (db) => discardSubmissions(db, seen, { reason, who })),
    pause: (detail, forMs) => raiseOperatorPause(pool, detail, forMs),
    resume: () => endOperatorPause(pool),
    shortenPauses: () => shortenPauses(pool),
    readSnapshot: () => readSnapshot(pool),
    readActivity: () => readActivity(pool),
    readProblems: (limit) => readProblems(pool, limit),
    [Symbol.asyncDispose]: close,
  }
}

/** What `outboxd check` looks at of a database that may be missing, empty or not ours to read. */
export interface Inspection<T> {
  variable: 'DATABASE_URL' | 'STATE_DATABASE_URL'
  url: string
  look(db: Database): Promise<T>
}

/** Looks at a database once. @throws DatabaseUnusable in words when it cannot be reached */
export async function inspectDatabase<T>({ variable, url, look }: Inspection<T>): Promise<T> {
  const pool = createPool({ url, name: 'outboxd check', connections: 1, onIdleError: () => {} })
  try {
    return await withDatabase(variable, url, () => look(pool))
  } finally {
    await pool.end()
  }
}

/** What came of asking the budget for a few requests. */
export type SlotLoan =
  | { kind: 'loan' /** After the answers: used slots are free again one window later. */; giveBack(): Promise<void> }
  | { kind: 'none-free' }
  /** There is a ledger's database and no budget in it: no daemon has set it up yet, so nobody else spends from it. */
  | { kind: 'no-budget' }
  /** Nobody can say what a daemon has spent. */
  | { kind: 'unknown' }

/** Takes slots for requests that are no submission's. */
export async function borrowSlots(
  url: string,
  { permits, reachMs }: { permits: number; reachMs: number },
): Promise<SlotLoan> {
  const onBudget = <T>(look: (db: Database) => Promise<T>) =>
    inspectDatabase({ variable: 'STATE_DATABASE_URL', url, look })
  try {
    return await onBudget(async (db) => {
      if (!(await budget.hasSlots(db))) return { kind: 'no-budget' }
      const slots = await budget.takeSlots(db, permits, reachMs, randomUUID())
      const spent = (used: boolean) => slots.map((slot) => ({ ...slot, used, submissions: 0 }))
      if (slots.reduce((sum, slot) => sum + slot.permits, 0) >= permits)
        return { kind: 'loan', giveBack: () => onBudget((again) => budget.giveBack(again, spent(true))) }
      await budget.giveBack(db, spent(false))
      return { kind: 'none-free' }
    })
  } catch {
    return { kind: 'unknown' } // check's finding about the ledger says why
  }
}
