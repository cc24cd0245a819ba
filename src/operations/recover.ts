import { countLimitAsSpent } from '../ledger/budget.ts'
import { insertCapturedRecords, lockCapture } from '../ledger/capture.ts'
import { lockDocuments } from '../ledger/documents.ts'
import { acceptHistory, pauseForHistory } from '../ledger/history/history.ts'
import { logOperatorAct, type Operator } from '../ledger/operator/operator.ts'
import {
  assertLedgerIsSame,
  readLedgerVersion,
  readRecordsInDoubt,
  type SettledRecords,
  settleRecordsInDoubt,
  trackNamedRecords,
  withdrawClaims,
} from '../ledger/operator/recover.ts'
import { PollQueue } from '../ledger/queue.ts'
import { readRequestOverAfterMs } from '../ledger/settings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { toCapturedRecord, toRejectedRecord } from '../mapping/mapRecord.ts'
import type { CapturedRecord, OutboxRecord } from '../model/outbox.ts'
import { canBeCausedByRow } from '../outbox/failingRows.ts'
import { readRecordWithContent } from '../outbox/readRecordContents.ts'
import {
  findRowsWithoutRecord,
  makeStaleReportsDue,
  type RowWithoutRecord,
  readTransactionsNamedInRows,
} from '../outbox/rowsUnderWay.ts'
import { beginTransaction, type Database, inTransaction } from '../postgres/database.ts'
import { inBatches } from './bulkChange.ts'
import { type Databases, withOutbox } from './databases.ts'
import { assertMappingsAreLedgers } from './ledgerFiles.ts'
import { findTransactionIdProblem } from './resolve.ts'

export interface Recovery extends SettledRecords {
  /** Rows that the ledger did not know, by what they say. */
  waiting: number
  marked: number
  /** Rows that it did not know, and whose contents cannot be read: their records are rejected. */
  unreadable: number
  /** Records that are polled on. */
  accepted: number
  /** Records that are polled from now on, because their rows name the transaction. */
  named: number
}

interface RecoveryParts {
  databases: Databases
  operator: Operator
  mappings: Mappings
}

/** Pauses all daemons, so that they claim nothing until the recovery is committed. */
export function pauseBeforeRecovery({ ledger, actor }: Operator): Promise<boolean> {
  return inTransaction(ledger, (db) => pauseForHistory(db, `${actor.who} says so`))
}

/**
 * Settles what may have been sent, in one transaction. Call `pauseBeforeRecovery` first.
 *
 *     lockCapture            no daemon captures until the end
 *     insertCapturedRecords  rows that the ledger does not know become uncertain, or rejected, because each has a doubt
 *     withdrawClaims         no daemon claims until the end
 *     trackNamedRecords      records whose rows name their transaction are polled
 *     settleRecordsInDoubt   all others that may have been sent become uncertain
 *     insertMissing          plans the polls anew
 *     countLimitAsSpent      until lost requests are over, because they count, too
 *     acceptHistory          ends the pause
 *
 * @param isPreview true to roll back at the end
 */
export async function recoverLedger(parts: RecoveryParts, isPreview: boolean): Promise<Recovery> {
  const { operator } = parts
  await using queue = await PollQueue.open(operator.ledger)
  await using transaction = await beginTransaction(operator.ledger, { openingSql: patienceSql })
  const { db } = transaction
  await lockCapture(db)
  const version = await readLedgerVersion(operator.ledger)
  // Until the COMMIT no daemon can set other files, because that takes this lock, too.
  await assertMappingsAreLedgers(parts.databases, parts.mappings)
  // Commits by itself, so that no recovery leaves it out. Nothing is written back before the pause ends.
  if (!isPreview) await withOutbox(parts.databases, makeStaleReportsDue)
  const recovery = await settleAll(db, queue, parts)
  await assertLedgerIsSame(db, version)
  await queue.insertMissing(db)
  await countLimitAsSpent(db, await readRequestOverAfterMs(db))
  await acceptHistory(db)
  await logOperatorAct(db, operator.actor, 'recover', { ...recovery })
  if (!isPreview) await transaction.commit()
  return recovery
}

/** Ends the pause, and changes no record. */
export function acceptLedgerAsComplete({ ledger, actor }: Operator): Promise<void> {
  return inTransaction(ledger, async (db) => {
    await acceptHistory(db)
    await logOperatorAct(db, actor, 'recover', { nothingLost: true })
  })
}

/** The whole outbox is read in between, on other sessions. */
const patienceSql = `set local idle_in_transaction_session_timeout = '1h'; set local statement_timeout = 0; set local lock_timeout = '15s'`

async function settleAll(
  db: Database,
  queue: PollQueue,
  { databases, operator: { actor }, mappings }: RecoveryParts,
): Promise<Recovery> {
  const rows = await withOutbox(databases, findRowsWithoutRecord)
  const inserted = { waiting: 0, marked: 0, unreadable: 0 }
  const lostTransactions = new Map<string, string>()
  for (const batch of inBatches(rows, rowsAtOnce)) {
    const records: CapturedRecord[] = []
    for (const row of batch) {
      const record = await readRecord(databases, mappings, row.outboxId)
      if (record === null) {
        inserted.unreadable += 1
        records.push(unreadableRecord(row))
        continue
      }
      records.push(toRecordInDoubt(record, row, mappings))
      inserted[row.isMarked ? 'marked' : 'waiting'] += 1
      if (row.transactionId !== null) lostTransactions.set(row.outboxId, row.transactionId)
    }
    await lockDocuments(db, records)
    await insertCapturedRecords(db, records, actor.who, actor)
  }
  const accepted = await withdrawClaims(db)
  const named = await trackAllNamedRecords(db, queue, { databases, actor, lostTransactions })
  const settled = await settleRecordsInDoubt(db, actor)
  return { ...settled, ...inserted, accepted, named }
}

/** Few, because payloads can be large. */
const rowsAtOnce = 100
const recordsAtOnce = 1_000

async function trackAllNamedRecords(
  db: Database,
  queue: PollQueue,
  {
    databases,
    actor,
    lostTransactions,
  }: Pick<RecoveryParts, 'databases'> & { actor: Operator['actor']; lostTransactions: ReadonlyMap<string, string> },
): Promise<number> {
  let tracked = 0
  for (let after = '-1'; ; ) {
    const records = await readRecordsInDoubt(db, after, recordsAtOnce)
    const last = records.at(-1)
    if (last === undefined) return tracked
    after = last.seq
    const ids = records.map(({ outboxId }) => outboxId)
    const transactions = await withOutbox(databases, (outbox) => readTransactionsNamedInRows(outbox, ids))
    const named = records.flatMap((record) => {
      const transactionId = lostTransactions.get(record.outboxId) ?? transactions.get(record.outboxId)
      if (transactionId === undefined || findTransactionIdProblem(transactionId) !== null) return []
      return [{ ...record, transactionId }]
    })
    tracked += await trackNamedRecords(db, queue, named, actor)
  }
}

/** Null if the row is gone, or if its contents cannot be read. */
function readRecord(databases: Databases, mappings: Mappings, outboxId: string): Promise<OutboxRecord | null> {
  return withOutbox(databases, (outbox) =>
    readRecordWithContent(outbox, mappings, outboxId).catch((error: unknown) => {
      if (!canBeCausedByRow(error)) throw error
      return null
    }),
  )
}

/** Without a record, the row would be captured and sent once it can be read again. */
const unreadableRecord = ({ outboxId }: RowWithoutRecord): CapturedRecord => ({
  ...toRejectedRecord(outboxId, 'the row cannot be read. The record may have arrived'),
  doubt: 'the ledger did not know this row, which cannot be read. The record may have arrived',
})

/** If the row cannot be mapped, the record becomes rejected, and may have arrived: also if its document is gone. */
function toRecordInDoubt(
  record: OutboxRecord,
  { isMarked, transactionId }: RowWithoutRecord,
  mappings: Mappings,
): CapturedRecord {
  const named = transactionId === null ? '' : ` and names transaction ${transactionId}`
  const doubt = `the ledger did not know this row, which ${isMarked ? 'is marked as captured' : 'waits'}${named}. The record may have arrived`
  const { error, ...captured } = toCapturedRecord(mappings, { ...record, noRecord: null })
  return { ...captured, doubt, error: error === null ? null : `${error}; ${doubt}` }
}
