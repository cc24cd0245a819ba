import { OutboxMismatch } from '../ledger/binding.ts'
import { emptyInstanceMemory, readAndJudgeHistory } from '../ledger/history/history.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { declareLedgerRestored } from '../ledger/operator/recover.ts'
import { makeReportsOfEndedRecordsDue } from '../ledger/reports.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import type { OutboxRecord } from '../model.ts'
import { compareTableWithLedger, type TableComparison, updateLedgerGapProblem } from '../outbox/comparison.ts'
import { canBeCausedByRow } from '../outbox/failingRows.ts'
import { readRecordWithContent } from '../outbox/readRecordContents.ts'
import { readRowsUnderWayOfNextSlice } from '../outbox/rowsUnderWay.ts'
import { createSearchForRowNamingTransaction } from '../outbox/rowsWithTransactionId.ts'
import { inTransaction } from '../postgres/database.ts'
import { requestOverAfterMs } from '../requestDurations.ts'
import { type Databases, withOutbox } from './databases.ts'

/** Null if the row is gone, or if its contents cannot be read. */
export function tryReadRecord(
  databases: Databases,
  mappings: Mappings,
  outboxId: string,
): Promise<OutboxRecord | null> {
  return withOutbox(databases, (outbox) =>
    readRecordWithContent(outbox, mappings, outboxId).catch((error: unknown) => {
      if (!canBeCausedByRow(error)) throw error
      return null
    }),
  )
}

/**
 * Finds rows that are marked as captured but missing from the ledger.
 * @param includesWaitingRows true also finds waiting rows that name a transaction; only while no daemon captures
 */
export function findLostRows(
  databases: Databases,
  goOn: () => boolean,
  includesWaitingRows = false,
): Promise<TableComparison> {
  const options = { shouldIncludeWaiting: includesWaitingRows, onlyLost: true, reportAgain: null, goOn }
  return withOutbox(databases, (outbox) => compareTableWithLedger(outbox, options))
}

/** Null if the ledger serves this outbox. */
export async function findOutboxMismatch(databases: Databases): Promise<string | null> {
  try {
    await withOutbox(databases, (outbox) => outbox.open())
    return null
  } catch (error) {
    if (error instanceof OutboxMismatch) return error.message
    throw error
  }
}

export async function isLedgerHistoryChangeUnnoticed(databases: Databases): Promise<boolean> {
  const findRowNamingTransaction = () =>
    withOutbox(databases, (outbox) =>
      createSearchForRowNamingTransaction((after) => readRowsUnderWayOfNextSlice(outbox, after)).find(),
    )
  const standby = databases.config.ledgerStandby
  const { reading, verdict } = await readAndJudgeHistory(databases.ledger, emptyInstanceMemory, {
    standby,
    findRowNamingTransaction,
  })
  return reading !== null && verdict.kind === 'found'
}

const usualTimeoutMs = 30_000

export function pauseDaemonsForRestoredLedger({ ledger, actor }: Operator): Promise<void> {
  return inTransaction(ledger, (db) => declareLedgerRestored(db, requestOverAfterMs(usualTimeoutMs), actor))
}

export async function makeMissingReportsDue(
  databases: Databases,
  { ledger, actor }: Operator,
  goOn: () => boolean,
): Promise<number> {
  let toldAgain = 0
  const reportAgain = async (outboxIds: readonly string[]) => {
    toldAgain += await makeReportsOfEndedRecordsDue(ledger, outboxIds, { actor: 'operator', who: actor.who })
  }
  const gap = await withOutbox(databases, (outbox) =>
    compareTableWithLedger(outbox, { onlyLost: true, reportAgain, goOn }),
  )
  await updateLedgerGapProblem(ledger, gap)
  return toldAgain
}
