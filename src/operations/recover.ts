import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { FoundHistory } from '../ledger/history/readHistory.ts'
import type { SettledDoubt } from '../ledger/operator/recoverDoubtful.ts'
import type { DoubtfulRecords, RecoveredAs } from '../ledger/operator/recoverHistory.ts'
import type { LostRecord } from '../ledger/operator/recoverRecords.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import type { OperatorChanges } from '../store/operatorChanges.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { batches } from './bulkChange.ts'
import { type Doubt, type LostRow, readDoubts, sharedTransactions, whyNotBelieved } from './doubts.ts'

/** What the ledger may have lost. */
export interface Loss {
  /** Rows that say they were taken and that it does not know. */
  gap: LedgerGap
  /** The transactions that several rows name, these or those of records that the ledger knows. */
  shared: ReadonlySet<string>
  /** It went back in time; null where its history is as the daemons have agreed to. */
  history: LostHistory | null
}

export interface LostHistory {
  found: FoundHistory
  doubtful: DoubtfulRecords
  /** Each record that is queued, with what its row makes of it. */
  doubts: readonly Doubt[]
  /** Rows that wait and were recorded before may have been captured and sent. */
  isOutboxInDoubt: boolean
  /** Rows that wait, and that a daemon had claimed: the ledger may have had them, and they may be marked yet. */
  inHandRows: readonly LostRow[]
  /** Of those that wait the ones whose table does not say when they were recorded, as they stand now; those that name a transaction are in the gap. */
  undatedRows: readonly LostRow[]
}

/** More rows that nobody can date are not told from those that are written meanwhile. */
const undatedMax = 10_000

/**
 * Finds out what the ledger may have lost.
 *
 * @param isWaitingToo what an operator knows: the outbox went back as well, wherever it is, or it did not; undefined: nothing
 * @param sayer who says that the ledger was put back, where nobody may have noticed
 * @param reading `goOn` is asked now and then, and `onProgress` told how many rows of doubtful records were read
 */
export async function findLoss(
  store: OperatorStore,
  { isWaitingToo, sayer }: { isWaitingToo: boolean | undefined; sayer: string | undefined },
  reading: Parameters<typeof readDoubts>[2],
): Promise<Loss> {
  const { goOn } = reading
  const found = await store.readFoundHistory(sayer)
  // Before the rows are compared: what is in hand now may say by then that it was taken.
  const inHand = found === null ? [] : await store.outbox.readInHand()
  const gap = await store.findGap(goOn, found !== null)
  if (found === null) return { gap, shared: sharedTransactions(gap.rows), history: null }
  const isOutboxInDoubt = !gap.canTell || (isWaitingToo ?? (await store.mayWaitingBeSent()))
  const waiting = isOutboxInDoubt ? await store.outbox.readNew(undatedMax) : []
  const lost = new Set(gap.rows.map(({ outboxId }) => outboxId))
  const inHandRows = waitingRows(inHand, lost, 'that it waits, and was in the hands of a daemon')
  const taken = lost.union(new Set(inHandRows.map(({ outboxId }) => outboxId)))
  const undated = waiting.filter(({ createdAt }) => createdAt === null)
  const undatedRows = waitingRows(undated, taken, 'that it waits')
  const { doubts, shared } = await readDoubts(store, gap.rows, reading)
  const doubtful = await store.readDoubtful()
  return { gap, shared, history: { found, doubtful, doubts, isOutboxInDoubt, inHandRows, undatedRows } }
}

/** Those that are not among others, as rows that the ledger does not know. */
function waitingRows(
  rows: readonly Pick<OutboxRecord, 'outboxId' | 'stamp' | 'createdAt'>[],
  others: ReadonlySet<string>,
  stateText: string,
): LostRow[] {
  return rows.flatMap(({ outboxId, stamp, createdAt }) =>
    others.has(outboxId) ? [] : [{ outboxId, stamp: stamp ?? '', createdAt, stateText, transactionId: null }],
  )
}

const batchSize = 100

/**
 * Takes rows in that the ledger does not know.
 *
 * @param shared the transactions that several rows name
 * @returns how many were taken in, before `goOn` said no
 */
export async function takeInRows(
  {
    outbox,
    changes,
    mappings,
    goOn,
    onProgress,
  }: {
    outbox: Pick<OperatorStore['outbox'], 'readReadable'>
    changes: Pick<OperatorChanges, 'recover'>
    mappings: Mappings
    goOn: () => boolean
    onProgress: (done: number) => void
  },
  rows: readonly LostRow[],
  { as, shared }: { as: RecoveredAs; shared: ReadonlySet<string> },
): Promise<number> {
  let taken = 0
  for (const batch of batches(rows, batchSize)) {
    if (!goOn()) break
    const records: LostRecord[] = []
    for (const row of batch) {
      const record = await readKept(outbox, mappings, row, { as, shared })
      if (record !== null) records.push(record)
    }
    await changes.recover(records)
    taken += records.length
    onProgress(taken)
  }
  return taken
}

/**
 * Takes doubtful records for what their rows say, or a person.
 *
 * @param seenAtMs when that was found which a person has seen
 * @returns false where that has changed since
 */
export async function takeInDoubts(
  {
    changes,
    goOn,
    onProgress,
  }: { changes: Pick<OperatorChanges, 'recoverDoubtful'>; goOn: () => boolean; onProgress: (done: number) => void },
  settled: readonly SettledDoubt[],
  seenAtMs: number,
): Promise<boolean> {
  let done = 0
  for (const batch of batches(settled, batchSize)) {
    if (!goOn()) break
    if (!(await changes.recoverDoubtful(batch, seenAtMs))) return false
    done += batch.length
    onProgress(done)
  }
  return true
}

/** The row as the ledger would have kept it; null where it is gone, or cannot be read. What does not map cannot have been sent: it is rejected. */
async function readKept(
  outbox: Pick<OperatorStore['outbox'], 'readReadable'>,
  mappings: Mappings,
  { outboxId, stateText, transactionId }: LostRow,
  { as, shared }: { as: RecoveredAs; shared: ReadonlySet<string> },
): Promise<LostRecord | null> {
  const row = await outbox.readReadable(outboxId)
  if (row === null) return null
  const id = uuidv7()
  const { unreadable: _, ...record } = row
  const named = transactionId === null ? '' : ` as transaction ${transactionId}`
  const kept = { ...record, id, idempotencyKey: randomUUID(), transactionId }
  const mapped = mapOutboxRecord(mappings, row, id)
  if (mapped.kind === 'refused')
    return {
      ...kept,
      ...{ resource: mapped.resource, body: null, tracked: true, sendsOwnId: false },
      error:
        transactionId === null ? mapped.reason : `${mapped.reason}; its row said ${stateText}${named}: it has arrived`,
    }
  const { resource, body, amounts, tracked, sendsOwnId } = mapped
  const doubt =
    as === 'new' && transactionId === null
      ? null
      : `the ledger had lost this row, which said ${stateText}${named}: it may have arrived`
  const given = { ...kept, resource, body, amounts, tracked, sendsOwnId, error: null }
  const disbelief = transactionId && whyNotBelieved(transactionId, shared)
  return disbelief === null
    ? { ...given, doubt }
    : { ...given, transactionId: null, doubt: `the ledger had lost this row; ${disbelief}: it may have arrived` }
}
