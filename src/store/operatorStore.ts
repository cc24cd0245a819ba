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
import type { FoundHistory } from '../ledger/history/readHistory.ts'
import { type InstanceReload, readPublishedTypes, readReloads } from '../ledger/instances.ts'
import { readUnderWay, type UnderWay } from '../ledger/operator/adoptOutbox.ts'
import { findSubmissions, type SubmissionReference } from '../ledger/operator/findSubmissions.ts'
import type { Seen, StatedActor } from '../ledger/operator/operator.ts'
import { type Activity, readActivity } from '../ledger/operator/readActivity.ts'
import { type BudgetSlots, readBudgetSlots } from '../ledger/operator/readBudgetSlots.ts'
import { type Cause, readCauses } from '../ledger/operator/readCauses.ts'
import { readRevisions } from '../ledger/operator/readRevisions.ts'
import { type ReadOnlyCause, readReadOnly } from '../ledger/operator/readServer.ts'
import { readSteps, type Step } from '../ledger/operator/readSteps.ts'
import { readSubmissionDetail, type SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
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
import { type Period, readPeriods, type Span } from '../ledger/periods.ts'
import { readProblems } from '../ledger/problems.ts'
import { type RecentCounts, readRecentCounts } from '../ledger/requestCounts.ts'
import { countPrunable, type PrunableCount, type PrunedSubmission, readPruned } from '../ledger/retention.ts'
import { readServedOutbox, type ServedOutbox } from '../ledger/servedOutbox.ts'
import { readServiceUse, type ServiceIdentity, type ServiceUse } from '../ledger/servedService.ts'
import { type LedgerSnapshot, readLastEventId, readSnapshot } from '../ledger/snapshot.ts'
import { type Holder, readOtherHolder, type TransactionRef } from '../ledger/transactions.ts'
import type { OutboxRecord, Problem } from '../model.ts'
import {
  countRowsOfUnknownStatus,
  describeOtherDaemons,
  findLedgerBesideOurs,
  findLostRows,
  findRowsPassedOver,
  readFoundHistory,
  readReadable,
} from '../operations/compareDatabases.ts'
import type { Databases, LedgerSessions } from '../operations/databases.ts'
import { openDatabases, operatorOf, readOutboxLocks, withOutbox } from '../operations/databases.ts'
import { countTypes, readBacklog, readHistory as readOutboxHistory } from '../outbox/backlog.ts'
import { findRemarks } from '../outbox/examineTable.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import type { PassedOver } from '../outbox/passedOver.ts'
import { readNew, readRecord, saysThatItWaits } from '../outbox/rows.ts'
import type { SecondLedger } from '../outbox/secondLedger.ts'
import { findNow, liesBefore, readHidden, whyNoStart } from '../outbox/startPosition.ts'
import { tryRow } from '../outbox/tryRow.ts'
import type { StatusCount } from '../outbox/unknownStatuses.ts'
import { type LockingSession, readLockingSessions } from '../postgres/locks.ts'
import { daemonSessions } from '../postgres/sessionSettings.ts'
import { type OperatorChanges, operatorChanges } from './operatorChanges.ts'

/** What commands ask the outbox. */
const outboxReads = {
  readRecord,
  readNew,
  tryRow,
  backlog: readBacklog,
  countTypes,
  identify: (outbox: Outbox) => outbox.identify(),
  findNow,
  tryStart: whyNoStart,
  readHidden,
  findRemarks,
  liesBefore,
  saysThatItWaits,
  readHistory: readOutboxHistory,
}

type OutboxReads = {
  [Name in keyof typeof outboxReads]: (typeof outboxReads)[Name] extends (
    outbox: Outbox,
    ...asked: infer Asked
  ) => infer Answer
    ? (...asked: Asked) => Answer
    : never
}

/** The databases, as an operator's commands use them. */
export interface OperatorStore extends Databases {
  /** What this person changes, for this reason: the logs say so. */
  actingAs(actor: StatedActor): OperatorChanges
  /** The ERP's database is first asked when one of these is called. */
  outbox: OutboxReads & {
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
  sessions?: LedgerSessions,
): Promise<OperatorStore> {
  const databases = await openDatabases(config, account, outboxTable, sessions)
  const { ledger: pool, erp: outboxPool } = databases
  const { keyOnFailure } = config
  const onOutbox = <T>(work: (outbox: Outbox) => Promise<T>) => withOutbox(databases, work)
  return {
    ...databases,
    outbox: {
      ...(Object.fromEntries(
        Object.entries(outboxReads).map(([name, read]) => [
          name,
          (...asked: never[]) =>
            onOutbox((erp) => (read as (outbox: Outbox, ...asked: never[]) => Promise<unknown>)(erp, ...asked)),
        ]),
      ) as OutboxReads),
      readReadable: (outboxId) => readReadable(databases, outboxId),
      describeOtherDaemons: () => describeOtherDaemons(databases),
      findSecondLedger: () => findLedgerBesideOurs(databases),
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
    actingAs: (actor) => operatorChanges(databases, operatorOf(databases, actor)),
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
    findGap: (goOn, isWaitingToo) => findLostRows(databases, goOn, isWaitingToo),
    readFoundHistory: (sayer) => readFoundHistory(pool, sayer),
    findPassedOver: (goOn) => findRowsPassedOver(databases, goOn),
    countUnknownStatuses: (goOn) => countRowsOfUnknownStatus(databases, goOn),
    countPrunable: () => countPrunable(pool, config.retention),
    readPublishedTypes: () => readPublishedTypes(pool),
    readReadOnly: (of) => readReadOnly(of === 'ledger' ? pool : outboxPool),
    readOutboxLocks: () => readOutboxLocks(databases),
    readHeartbeatLocks: () => readLockingSessions(pool, daemonSessions.heartbeat),
    readRecordsOfKey: (key) => readRecordsOfKey(pool, key),
    readUnkeptAmounts: (ids) => readUnkeptAmounts(pool, ids),
    verifyChain: (noted, onProgress) => verifyChain(pool, noted, onProgress),
    readHands: (filter, before, limit) => readHands(pool, filter, before, limit),
    readAudit: (span) => readAudit(pool, span),
    readProblems: (limit) => readProblems(pool, limit),
  }
}
