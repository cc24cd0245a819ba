import { setTimeout } from 'node:timers/promises'
import type { StoreConfig } from '../config.ts'
import type { ChainHead } from '../ledger/audit/chain.ts'
import {
  type KeyRecord,
  readRecordsOfKey,
  readUnkeptAmounts,
  type UnkeptAmounts,
} from '../ledger/audit/eraseRecords.ts'
import { type AuditEntry, type AuditSpan, readAudit } from '../ledger/audit/readAudit.ts'
import { type Hand, type HandsFilter, type HandsPosition, readHands } from '../ledger/audit/readHands.ts'
import { type ChainVerdict, verifyChain } from '../ledger/audit/verifyChain.ts'
import { judgeHistory } from '../ledger/history/decideHistory.ts'
import { type FoundHistory, nothingRemembered, readFound, readHistory } from '../ledger/history/readHistory.ts'
import { type InstanceReload, readPublishedTypes, readReloads } from '../ledger/instances.ts'
import type { StatedActor } from '../ledger/operator/acts.ts'
import { readUnderWay, type UnderWay } from '../ledger/operator/adoptOutbox.ts'
import { findSubmissions, type SubmissionReference } from '../ledger/operator/findSubmissions.ts'
import { type Activity, readActivity } from '../ledger/operator/readActivity.ts'
import { type BudgetSlots, readBudgetSlots } from '../ledger/operator/readBudgetSlots.ts'
import { type Cause, readCauses } from '../ledger/operator/readCauses.ts'
import { readRevisions } from '../ledger/operator/readRevisions.ts'
import { type ReadOnlyCause, readReadOnly, readSystemId } from '../ledger/operator/readServer.ts'
import { readSteps, type Step } from '../ledger/operator/readSteps.ts'
import { readSubmissionDetail, type SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import { type DoubtfulRecord, type NamedTransaction, readNamed } from '../ledger/operator/recoverDoubtful.ts'
import {
  type DoubtfulRecords,
  type LastRecovery,
  readDoubtful,
  readDoubtfulRecords,
  readLastRecovery,
  saysRestored,
} from '../ledger/operator/recoverHistory.ts'
import { type ReplayableSubmission, readReplayable } from '../ledger/operator/replaySubmissions.ts'
import { type SearchBounds, searchText, type TextSearch } from '../ledger/operator/searchText.ts'
import { type PageWanted, type SubmissionPage, selectPage } from '../ledger/operator/selectPage.ts'
import {
  countSubmissions,
  type ListedSubmission,
  type ListOrder,
  type SubmissionFilter,
  selectSubmissions,
} from '../ledger/operator/selectSubmissions.ts'
import { ownNames } from '../ledger/ownNames.ts'
import { type Period, readPeriods, type Span } from '../ledger/periods.ts'
import { readProblems } from '../ledger/problems.ts'
import { type RecentCounts, readRecentCounts } from '../ledger/requestCounts.ts'
import { countPrunable, type PrunableCount, type PrunedSubmission, readPruned } from '../ledger/retention.ts'
import { readServedOutbox, type ServedOutbox } from '../ledger/servedOutbox.ts'
import {
  readLedgerId,
  readLedgerName,
  readServiceUse,
  type ServiceIdentity,
  type ServiceUse,
} from '../ledger/servedService.ts'
import { type LedgerSnapshot, readLastEventId, readSnapshot } from '../ledger/snapshot.ts'
import { type Holder, readOtherHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { OutboxRecord, Problem } from '../model.ts'
import { comparisonBounds, findPassedOver, type PassedOver } from '../outbox/comparison.ts'
import { mayBeRowsFault } from '../outbox/failingRows.ts'
import { commandRowsMax, findGap, type LedgerGap } from '../outbox/ledgerGap.ts'
import { findOtherDaemons, otherLedgerMessage } from '../outbox/ledgerRegistration.ts'
import { createNamedRowSearch } from '../outbox/namedRow.ts'
import { openOutbox } from '../outbox/openOutbox.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import { findSecondLedger, type SecondLedger } from '../outbox/secondLedger.ts'
import { countUnknownStatuses, noStatuses, type StatusCount } from '../outbox/unknownStatuses.ts'
import { daemonSessions } from '../postgres/daemonSessions.ts'
import { createPool, withDatabase } from '../postgres/database.ts'
import { type LockingSession, readLockingSessions } from '../postgres/lockingSessions.ts'
import { assertMigrated } from './migrateStores.ts'
import { type OperatorChanges, operatorChanges, type Seen } from './operatorChanges.ts'

const goodbyeMs = 1_000

const outboxName = 'outboxd command outbox'

/** The databases, as an operator's commands use them. */
export interface OperatorStore extends AsyncDisposable {
  /** What this person changes, for this reason: the logs say so. */
  actingAs(actor: StatedActor): OperatorChanges
  /** The ERP's database is first asked when one of these is called. */
  outbox: Pick<
    Outbox,
    | 'readRecord'
    | 'readSaid'
    | 'readNew'
    | 'readInHand'
    | 'tryRow'
    | 'backlog'
    | 'countTypes'
    | 'identify'
    | 'findNow'
    | 'tryStart'
    | 'readHidden'
    | 'findRemarks'
    | 'liesBefore'
    | 'saysThatItWaits'
    | 'readHistory'
  > & {
    /** Says that a daemon of another ledger serves the outbox, and what to do; null if none does. */
    describeOtherDaemons(): Promise<string | null>
    /** A ledger in the outbox's own database that is not ours. */
    findSecondLedger(): Promise<SecondLedger | null>
    /** As `readRecord`; null also where what the row holds raises an error. */
    readReadable(outboxId: string): Promise<OutboxRecord | null>
  }
  select(filter: SubmissionFilter, limit: number, order?: ListOrder): Promise<ListedSubmission[]>
  /** A part of the same list, from a position on. */
  selectPage(filter: SubmissionFilter, wanted: PageWanted): Promise<SubmissionPage>
  /** A text for each of these that is other when it has taken a step, or has been asked for. */
  readRevisions(ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** The id of the newest event. */
  readLastEventId(): Promise<string>
  /** The steps that submissions took after that event, up to `most`. */
  readSteps(afterId: string, most: number): Promise<Step[]>
  /** How many match, counted up to `most`. */
  count(filter: SubmissionFilter, most: number): Promise<number>
  /** Those of the matching ones whose payload, body or key has the text in it. */
  searchText(filter: SubmissionFilter, text: string, bounds: SearchBounds): Promise<TextSearch>
  /** What the matching ones stand there for, of `rowsMax` at most. */
  readCauses(filter: SubmissionFilter, rowsMax: number): Promise<{ causes: Cause[]; lookedAt: number; isCut: boolean }>
  find(reference: SubmissionReference, limit: number): Promise<ListedSubmission[]>
  readSubmissionDetail(id: string): Promise<SubmissionDetail | null>
  /** What is left of the submission of an outbox row that was pruned; null where none was. */
  readPruned(outboxId: string): Promise<PrunedSubmission | null>
  /** Another submission than this one that the ledger has under the transaction's id; null where there is none. */
  readOtherHolder(seen: Seen, transaction: TransactionRef): Promise<Holder | null>
  readReplayable(seen: readonly Seen[]): Promise<ReplayableSubmission[]>
  /** The daemons that live, and what they have said to that. */
  readReloads(): Promise<InstanceReload[]>
  readSnapshot(): Promise<LedgerSnapshot>
  readActivity(): Promise<Activity>
  /** How the service has served us. */
  readRecentCounts(): Promise<RecentCounts>
  /** What the budget was spent on within the last window. */
  readBudgetSlots(): Promise<BudgetSlots>
  /** What became of records in the minutes, or hours, that began within so long. */
  readPeriods(span: Span, withinMs: number): Promise<Period[]>
  /** The outbox that the ledger belongs to. */
  readServedOutbox(): Promise<ServedOutbox>
  readUnderWay(): Promise<UnderWay>
  /** What the ledger's service would be exchanged under. */
  readServiceUse(service: ServiceIdentity): Promise<ServiceUse>
  /**
   * Rows that say they were taken and that the ledger does not know.
   *
   * @param goOn asked between slices
   * @param isWaitingToo also those that wait and name a transaction: nobody captures meanwhile
   */
  findGap(goOn: () => boolean, isWaitingToo?: boolean): Promise<LedgerGap>
  /**
   * What was found of the ledger's history; null where it is as it was agreed to.
   *
   * @param sayer who says that it was put back, so that it is as if that was found now
   */
  readFoundHistory(sayer?: string): Promise<FoundHistory | null>
  /** When a person last took in what the ledger had lost; null where nobody did. */
  readLastRecovery(): Promise<LastRecovery | null>
  /** Whether the history is another, and no daemon has looked at it yet. */
  isHistoryUnseen(): Promise<boolean>
  /** What the ledger has that may have been sent since. */
  readDoubtful(): Promise<DoubtfulRecords>
  /** Each of those that are queued. */
  readDoubtfulRecords(): Promise<DoubtfulRecord[]>
  /** What the ledger knows of the transactions that rows name. */
  readNamed(named: readonly (TransactionRef & { id: string })[]): Promise<NamedTransaction[]>
  /**
   * Whether rows that wait may have been sent: the outbox is on the ledger's server, and went back with it, also where nobody can
   * tell; or its rows do not say at once that they are taken.
   */
  mayWaitingBeSent(): Promise<boolean>
  /** Rows that wait behind the position up to which the table was read. @param goOn asked between slices */
  findPassedOver(goOn: () => boolean): Promise<PassedOver>
  /** Rows whose status the description does not name. @param goOn asked between slices */
  countUnknownStatuses(goOn: () => boolean): Promise<StatusCount>
  /** What the retention of this configuration lets go now. */
  countPrunable(): Promise<PrunableCount[]>
  /** The types that a running daemon has a mapping file for; null where one, of an older version, does not say. */
  readPublishedTypes(): Promise<string[] | null>
  /** Why one of the databases cannot be written; null where it can. */
  readReadOnly(of: 'ledger' | 'outbox'): Promise<ReadOnlyCause | null>
  /** Whose locks a question to the outbox waits for that was asked here, or by another command. */
  readOutboxLocks(): Promise<LockingSession[]>
  /** Whose locks the daemons' signs of life wait for. */
  readHeartbeatLocks(): Promise<LockingSession[]>
  /** What stands, the oldest first. */
  readProblems(limit: number): Promise<Problem[]>
  /** Reckons the logs' chain anew. @param noted a head that it must still have */
  verifyChain(noted: ChainHead | null, onProgress: (verdict: ChainVerdict) => void): Promise<ChainVerdict>
  /** The records of a key, and whether their data may be erased. */
  readRecordsOfKey(key: string): Promise<KeyRecord[]>
  /** Of these records, what those were made of whose amounts the log does not have. */
  readUnkeptAmounts(ids: readonly string[]): Promise<UnkeptAmounts[]>
  /** What persons did, newest first. */
  readHands(
    filter: HandsFilter,
    before: HandsPosition | null,
    limit: number,
  ): Promise<{ hands: Hand[]; next: HandsPosition | null }>
  /** What became of records, and what persons did. */
  readAudit(span: AuditSpan): AsyncGenerator<AuditEntry>
}

export interface LedgerSessions {
  connections?: number
  lockMs?: number
}

/**
 * Opens the ledger for a command.
 *
 * @param account user@host that gives the command, for the logs
 * @param outboxTable how to read the outbox, asked when it is first used: a broken description keeps nobody from pausing
 * @param sessions of the ledger: how many at most, and how long each waits for a lock of others where that is said
 * @throws DatabaseUnusable when it cannot be reached or has not been migrated
 */
export async function openOperatorStore(
  config: StoreConfig,
  account: string,
  outboxTable: () => OutboxTable | string,
  { connections = 2, lockMs }: LedgerSessions = {},
): Promise<OperatorStore> {
  const onIdleError = () => {} // the next statement says so
  const { stateDatabaseUrl, databaseUrl, keyOnFailure } = config
  const pool = createPool({
    ...{ url: stateDatabaseUrl, name: 'outboxd command', connections, onIdleError },
    settings: lockMs === undefined ? ownNames : { ...ownNames, lock_timeout: String(lockMs) },
  })
  const outboxPool = createPool({
    url: databaseUrl,
    name: outboxName,
    connections: 2,
    onIdleError,
    // A person waits: a table that somebody has locked is said to be so, and not waited for.
    settings: { lock_timeout: '2500' },
  })
  // Whom the others wait for is asked on a connection of its own.
  const lockPool = createPool({ url: databaseUrl, name: 'outboxd command locks', connections: 1, onIdleError })
  const close = async () => {
    const ends = [pool.end(), outboxPool.end(), lockPool.end()]
    // A question that was given up may still wait for its answer.
    await Promise.race([Promise.allSettled(ends), setTimeout(goodbyeMs, undefined, { ref: false })])
  }
  let outbox: Outbox | undefined
  const onOutbox = <T>(work: (outbox: Outbox) => Promise<T>) =>
    withDatabase('DATABASE_URL', databaseUrl, async () => {
      outbox ??= openOutbox(outboxPool, outboxTable(), config.payloadMaxBytes, pool)
      return work(outbox)
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
      readReadable: (outboxId) =>
        onOutbox((erp) =>
          erp.readRecord(outboxId).catch((error: unknown) => {
            if (!mayBeRowsFault(error)) throw error
            return null
          }),
        ),
      describeOtherDaemons: () =>
        onOutbox(async ({ qualified }) => {
          const daemons = await findOtherDaemons(outboxPool, qualified, await readLedgerName(pool))
          return daemons.length === 0 ? null : otherLedgerMessage(qualified, daemons)
        }),
      findSecondLedger: () =>
        onOutbox(async (erp) => findSecondLedger(outboxPool, await readLedgerId(pool), (await erp.identify()).table)),
      readSaid: (outboxIds) => onOutbox((erp) => erp.readSaid(outboxIds)),
      readHidden: (start) => onOutbox((erp) => erp.readHidden(start)),
      findRemarks: () => onOutbox((erp) => erp.findRemarks()),
      liesBefore: (outboxId) => onOutbox((erp) => erp.liesBefore(outboxId)),
      saysThatItWaits: (outboxId) => onOutbox((erp) => erp.saysThatItWaits(outboxId)),
      readNew: (limit) => onOutbox((erp) => erp.readNew(limit)),
      readInHand: () => onOutbox((erp) => erp.readInHand()),
      tryRow: () => onOutbox((erp) => erp.tryRow()),
      countTypes: () => onOutbox((erp) => erp.countTypes()),
      backlog: () => onOutbox((erp) => erp.backlog()),
      readHistory: () => onOutbox((erp) => erp.readHistory()),
      identify: () => onOutbox((erp) => erp.identify()),
      findNow: () => onOutbox((erp) => erp.findNow()),
      tryStart: (start) => onOutbox((erp) => erp.tryStart(start)),
    },
    select: (filter, limit, order) => selectSubmissions(pool, filter, limit, order),
    selectPage: (filter, wanted) => selectPage(pool, filter, wanted),
    readRevisions: (ids) => readRevisions(pool, ids),
    readLastEventId: () => readLastEventId(pool),
    readSteps: (afterId, most) => readSteps(pool, afterId, most),
    count: (filter, most) => countSubmissions(pool, filter, most),
    searchText: (filter, text, bounds) => searchText(pool, filter, text, bounds),
    readCauses: (filter, rowsMax) => readCauses(pool, filter, rowsMax),
    find: (reference, limit) => findSubmissions(pool, reference, limit),
    actingAs: (actor) =>
      operatorChanges({
        ...{ ledger: pool, config, actor: { ...actor, account } },
        outbox: {
          findPresent: (ids) => onOutbox((erp) => erp.findPresent(ids)),
          readTaken: (after) => onOutbox((erp) => erp.readTaken(after)),
        },
      }),
    readSubmissionDetail: (id) => readSubmissionDetail(pool, id, keyOnFailure),
    readPruned: (outboxId) => readPruned(pool, outboxId),
    readOtherHolder: (seen, transaction) => readOtherHolder(pool, transaction, seen.id),
    readReplayable: (seen) => readReplayable(pool, seen),
    readReloads: () => readReloads(pool),
    readSnapshot: () => readSnapshot(pool),
    readActivity: () => readActivity(pool, keyOnFailure),
    readRecentCounts: () => readRecentCounts(pool),
    readBudgetSlots: () => readBudgetSlots(pool),
    readPeriods: (span, withinMs) => readPeriods(pool, span, withinMs),
    readServedOutbox: () => readServedOutbox(pool),
    readUnderWay: () => readUnderWay(pool),
    readServiceUse: (service) => readServiceUse(pool, service, false),
    findGap: (goOn, isWaitingToo = false) =>
      onOutbox((erp) => {
        const outbox = { readTaken: (after: string | null) => erp.readTaken(after, isWaitingToo) }
        return findGap({ tellAgain: null, outbox, goOn: async () => goOn(), rowsMax: commandRowsMax, begun: null })
      }),
    readFoundHistory: (sayer) =>
      readFound(pool, sayer === undefined ? null : { detail: saysRestored(sayer), by: sayer }),
    async isHistoryUnseen() {
      const view = await readHistory(pool, nothingRemembered)
      if (view === null || view.foundForMs !== null) return false
      const findNamed = () => onOutbox((erp) => createNamedRowSearch(erp).find())
      return (await judgeHistory(view, null, findNamed)).kind === 'found'
    },
    readLastRecovery: () => readLastRecovery(pool),
    readDoubtful: () => readDoubtful(pool),
    readDoubtfulRecords: () => readDoubtfulRecords(pool),
    readNamed: (named) => readNamed(pool, named),
    async mayWaitingBeSent() {
      const [ours, erps] = await Promise.all([readSystemId(pool), onOutbox(() => readSystemId(outboxPool))])
      return ours === null || erps === null || ours === erps || !(await onOutbox(async (erp) => erp.saysTaken))
    },
    findPassedOver: (goOn) =>
      onOutbox((erp) =>
        findPassedOver({
          outbox: erp,
          goOn: async () => goOn(),
          sliceRows: comparisonBounds.sliceRows,
          after: null,
        }),
      ),
    countUnknownStatuses: (goOn) =>
      onOutbox((erp) =>
        countUnknownStatuses(erp, noStatuses, { goOn: async () => goOn(), sliceRows: comparisonBounds.sliceRows }),
      ),
    countPrunable: () => countPrunable(pool, config.retention),
    readPublishedTypes: () => readPublishedTypes(pool),
    readReadOnly: (of) => readReadOnly(of === 'ledger' ? pool : outboxPool),
    readOutboxLocks: () => readLockingSessions(lockPool, outboxName),
    readHeartbeatLocks: () => readLockingSessions(pool, daemonSessions.heartbeat),
    readRecordsOfKey: (key) => readRecordsOfKey(pool, key),
    readUnkeptAmounts: (ids) => readUnkeptAmounts(pool, ids),
    verifyChain: (noted, onProgress) => verifyChain(pool, noted, onProgress),
    readHands: (filter, before, limit) => readHands(pool, filter, before, limit),
    readAudit: (span) => readAudit(pool, span),
    readProblems: (limit) => readProblems(pool, limit),
    [Symbol.asyncDispose]: close,
  }
}
