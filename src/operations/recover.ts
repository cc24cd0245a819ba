import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { readSuspectedLoss, type SuspectedLoss } from '../ledger/history/history.ts'
import { logOperatorAct, type Operator } from '../ledger/operator/operator.ts'
import {
  checkTransactionIdsOfRows,
  countDoubtfulRecords,
  type DoubtfulRecord,
  type DoubtfulRecordCounts,
  finishRecovery,
  type LostRecord,
  type RecordNamingTransaction,
  type RecoveredAs,
  readDoubtfulRecords,
  recoverByTransactionsInRows,
  recoverLostRecords,
  transactionTakenClause,
} from '../ledger/operator/recover.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model.ts'
import type { TableComparison } from '../outbox/comparison.ts'
import type { DatedRow } from '../outbox/ledgerMemory.ts'
import { readUncapturedRowsLockedByCapture } from '../outbox/lockedRows.ts'
import { findUndatedWaitingRows } from '../outbox/readRows.ts'
import { type RowWithTransactionId, readCapturedRowsWithTransactionId } from '../outbox/rowsWithTransactionId.ts'
import { waitForWriteBack } from '../outbox/writeBack.ts'
import { inBatches } from './bulkChange.ts'
import { findLostRows, makeMissingReportsDue, tryReadRecord } from './compareDatabases.ts'
import { type Databases, withOutbox } from './databases.ts'
import { findTransactionIdProblem } from './resolve.ts'

type LostRow = TableComparison['rows'][number]

export interface LedgerLoss {
  gap: TableComparison
  /** Ids of transactions that several rows name. */
  sharedTransactionIds: ReadonlySet<string>
  history: SuspectedLossDetail | null
}

export interface SuspectedLossDetail {
  found: SuspectedLoss
  doubtful: DoubtfulRecordCounts
  /** Their rows name a transaction that the ledger does not know as theirs. */
  named: readonly RecordWithLostTransaction[]
  isMarkedOnCapture: boolean
  isOutboxInDoubt: boolean
  /** Waiting rows that a daemon has locked, and may have captured before the ledger lost data. */
  lockedWaitingRows: readonly LostRow[]
  undatedRows: readonly LostRow[]
  areUndatedRowsCut: boolean
}

export type RecordWithLostTransaction = RecordNamingTransaction & Pick<RowWithTransactionId, 'said'>

/** Bounds the memory. Another run takes further rows. */
const undatedMax = 100_000

/**
 * @param areWaitingRowsDoubtful undefined if the operator does not say
 * @param restoredBy the operator who says that the ledger was restored
 * @throws DatabaseUnusable if the outbox cannot be read
 */
export async function findLedgerLoss(
  databases: Databases,
  {
    areWaitingRowsDoubtful,
    restoredBy,
  }: { areWaitingRowsDoubtful: boolean | undefined; restoredBy: string | undefined },
  goOn: () => boolean,
): Promise<LedgerLoss> {
  const { ledger } = databases
  const found = await readSuspectedLoss(ledger, restoredBy)
  if (found !== null) await withOutbox(databases, waitForWriteBack)
  // Read before the comparison, because locked rows may be marked as captured meanwhile.
  const inHand =
    found === null ? [] : await withOutbox(databases, (outbox) => readUncapturedRowsLockedByCapture(outbox, goOn))
  const gap = await findLostRows(databases, goOn, found !== null)
  if (found === null) return { gap, sharedTransactionIds: transactionsNamedTwice(gap.rows), history: null }
  const isMarkedOnCapture = await withOutbox(databases, async (outbox) => outbox.isMarkedOnCapture)
  // A restore of the database usually restores the outbox, too.
  const isOutboxInDoubt = !isMarkedOnCapture || (areWaitingRowsDoubtful ?? true)
  const undated = isOutboxInDoubt
    ? await withOutbox(databases, (outbox) => findUndatedWaitingRows(outbox, { rowsMax: undatedMax, goOn }))
    : { outboxIds: [], isCut: false }
  const lost = new Set(gap.rows.map(({ outboxId }) => outboxId))
  const lockedWaitingRows = waitingRows(inHand, lost, 'that it waits, but a daemon had locked it')
  const taken = lost.union(new Set(lockedWaitingRows.map(({ outboxId }) => outboxId)))
  const undatedIds = undated.outboxIds.map((outboxId) => ({ outboxId, created: null, createdAt: null }))
  const undatedRows = waitingRows(undatedIds, taken, 'that it waits')
  const { named, sharedTransactionIds } = await readNamedRecords(databases, gap.rows, goOn)
  const doubtful = await countDoubtfulRecords(ledger)
  return {
    gap,
    sharedTransactionIds,
    history: {
      ...{ found, doubtful, named, isMarkedOnCapture, isOutboxInDoubt, lockedWaitingRows, undatedRows },
      areUndatedRowsCut: undated.isCut,
    },
  }
}

function waitingRows(rows: readonly DatedRow[], others: ReadonlySet<string>, stateText: string): LostRow[] {
  return rows.flatMap((row) => (others.has(row.outboxId) ? [] : [{ ...row, stateText, transactionId: null }]))
}

const readAtOnce = 1_000

async function readNamedRecords(
  databases: Databases,
  lost: readonly LostRow[],
  goOn: () => boolean,
): Promise<{ named: RecordWithLostTransaction[]; sharedTransactionIds: ReadonlySet<string> }> {
  const records = await readDoubtfulRecords(databases.ledger)
  const naming: (DoubtfulRecord & RowWithTransactionId & { heldBy: string | null })[] = []
  for (const batch of inBatches(records, readAtOnce)) {
    if (!goOn()) break
    const ids = batch.map(({ outboxId }) => outboxId)
    const rows = await withOutbox(databases, (outbox) => readCapturedRowsWithTransactionId(outbox, ids))
    const rowsById = new Map(rows.map((row) => [row.outboxId, row]))
    const these = batch.flatMap((record) => {
      const row = rowsById.get(record.outboxId)
      return row === undefined ? [] : [{ ...record, ...row }]
    })
    const known = new Map((await checkTransactionIdsOfRows(databases.ledger, these)).map((each) => [each.id, each]))
    for (const each of these) {
      const { isFormer = false, heldBy = null } = known.get(each.id) ?? {}
      if (!isFormer) naming.push({ ...each, heldBy })
    }
  }
  const sharedTransactionIds = transactionsNamedTwice([...lost, ...naming])
  const named = naming.map(({ heldBy, ...record }) => {
    const { transactionId } = record
    const whyNotBelieved =
      heldBy === null
        ? whyTransactionIsNotTrusted(transactionId, sharedTransactionIds)
        : transactionTakenClause(transactionId, heldBy)
    return { ...record, whyNotBelieved }
  })
  return {
    named: named.filter(({ isQueued, whyNotBelieved }) => isQueued || whyNotBelieved === null),
    sharedTransactionIds,
  }
}

function transactionsNamedTwice(rows: readonly Pick<LostRow, 'transactionId'>[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(
    rows.flatMap(({ transactionId }) =>
      transactionId === null || seen.size < seen.add(transactionId).size ? [] : [transactionId],
    ),
  )
}

function whyTransactionIsNotTrusted(transactionId: string, sharedTransactionIds: ReadonlySet<string>): string | null {
  if (sharedTransactionIds.has(transactionId))
    return `its outbox row names transaction ${transactionId}, and so does another row`
  const problem = findTransactionIdProblem(transactionId)
  return problem && `its outbox row names an invalid transaction: ${problem}`
}

export const countRowsNamingTransaction = (rows: readonly LostRow[]): number =>
  rows.filter(({ transactionId }) => transactionId !== null).length

interface RecaptureParts {
  goOn(): boolean
  databases: Databases
  operator: Operator
  mappings: Mappings
  onTaken(done: number, of: number): void
  say(sentence: string): void
}

/** `changed`: the finding changed, or another operator was faster. `interrupted`: another run does the rest. */
type RecaptureOutcome = 'done' | 'interrupted' | 'changed'

/** Commits each batch of rows. Sending resumes after the last batch. */
export async function recoverFromLedgerLoss(
  parts: RecaptureParts,
  { gap, sharedTransactionIds, history }: LedgerLoss,
  as: RecoveredAs,
): Promise<RecaptureOutcome> {
  const { databases, operator, goOn, say } = parts
  if (history !== null && (await readSuspectedLoss(databases.ledger))?.atMs !== history.found.atMs) return 'changed'
  const rows = [
    ...gap.rows,
    ...(history?.lockedWaitingRows ?? []),
    ...(as === 'uncertain' ? (history?.undatedRows ?? []) : []),
  ]
  const taken = await takeInRows(parts, rows, { as, sharedTransactionIds })
  if (rows.length > 0)
    say(
      `Rows captured again as ${as}: ${taken}${exceptRowsNamingTransactionSuffix(countRowsNamingTransaction(gap.rows))}.`,
    )
  if (goOn() && taken < rows.length) say(`Rows left out, because they are gone or unreadable: ${rows.length - taken}.`)
  await reportEndedRecordsAgain(parts)
  if (history === null && taken > 0)
    await logOperatorAct(operator.ledger, operator.actor, 'recover', { as, rows: taken })
  if (!goOn()) return 'interrupted'
  if (history === null) return 'done'
  const isCut = gap.isCut || (as === 'uncertain' && history.areUndatedRowsCut)
  return isCut ? 'interrupted' : goOnAfter(parts, history, { as, lost: gap.rows, rows: taken })
}

export const exceptRowsNamingTransactionSuffix = (count: number): string =>
  count === 0 ? '' : `, except ${count} that name a transaction`

export async function reportEndedRecordsAgain({
  databases,
  operator,
  goOn,
  say,
}: Pick<RecaptureParts, 'databases' | 'operator' | 'goOn' | 'say'>): Promise<void> {
  const toldAgain = await makeMissingReportsDue(databases, operator, goOn)
  if (toldAgain > 0)
    say(`Ended records whose rows still say that they are under way, now written back again: ${toldAgain}.`)
}

const batchSize = 100

async function takeInRows(
  { databases, operator, mappings, goOn, onTaken }: RecaptureParts,
  rows: readonly LostRow[],
  how: { as: RecoveredAs; sharedTransactionIds: ReadonlySet<string> },
): Promise<number> {
  let taken = 0
  for (const batch of inBatches(rows, batchSize)) {
    if (!goOn()) break
    const records: LostRecord[] = []
    for (const row of batch) {
      const record = await tryReadRecord(databases, mappings, row.outboxId)
      if (record !== null) records.push(keep(record, row, mappings, how))
    }
    await recoverLostRecords(operator, records)
    taken += records.length
    onTaken(taken, rows.length)
  }
  return taken
}

/** If the row cannot be mapped, the record becomes rejected. */
function keep(
  { unreadable, ...record }: OutboxRecord,
  { stateText, transactionId }: LostRow,
  mappings: Mappings,
  { as, sharedTransactionIds }: { as: RecoveredAs; sharedTransactionIds: ReadonlySet<string> },
): LostRecord {
  const id = uuidv7()
  const said = `said ${stateText}${transactionId === null ? '' : ` as transaction ${transactionId}`}`
  const kept = { ...record, id, idempotencyKey: randomUUID() }
  const mapped = mapOutboxRecord(mappings, { ...record, unreadable }, id)
  if (mapped.kind === 'refused') {
    const error =
      transactionId === null ? mapped.reason : `${mapped.reason}; its row ${said}, so the record has arrived`
    const { resource } = mapped
    const doubt = 'the ledger had lost this row. The record may have arrived'
    const why = `${error}; ${doubt}`
    return { ...kept, resource, body: null, tracked: true, sendsOwnId: false, transactionId, error: why, doubt }
  }
  const { resource, body, amounts, tracked, sendsOwnId } = mapped
  const given = { ...kept, resource, body, amounts, tracked, sendsOwnId, error: null }
  const whyNot = transactionId === null ? null : whyTransactionIsNotTrusted(transactionId, sharedTransactionIds)
  if (whyNot !== null)
    return {
      ...given,
      transactionId: null,
      doubt: `the ledger had lost this row, and ${whyNot}. The record may have arrived`,
    }
  const doubt =
    as === 'new' && transactionId === null
      ? null
      : `the ledger had lost this row, which ${said}. The record may have arrived`
  return { ...given, transactionId, doubt }
}

async function goOnAfter(
  parts: RecaptureParts,
  { found, named: seen, isOutboxInDoubt }: SuspectedLossDetail,
  { as, lost, rows }: { as: RecoveredAs; lost: readonly LostRow[]; rows: number },
): Promise<RecaptureOutcome> {
  const { databases, operator, goOn, onTaken, say } = parts
  const alreadyDecided = { arrived: 0, uncertain: 0, rows }
  // Records that changed meanwhile are read again before anything is sent.
  for (let named = seen; named.length > 0; { named } = await readNamedRecords(databases, lost, goOn)) {
    let done = 0
    for (const batch of inBatches(named, batchSize)) {
      if (!goOn()) return 'interrupted'
      if (!(await recoverByTransactionsInRows(operator, batch, found.atMs))) return 'changed'
      done += batch.length
      onTaken(done, named.length)
    }
    for (const { whyNotBelieved } of named) alreadyDecided[whyNotBelieved === null ? 'arrived' : 'uncertain'] += 1
    if (!goOn()) return 'interrupted'
  }
  const terms = { queuedBecome: as, seenAtMs: found.atMs, isOutboxInDoubt, alreadyDecided }
  const queued = await finishRecovery(operator, terms)
  if (queued === null) return 'changed'
  if (alreadyDecided.arrived > 0) say(`Records that have arrived, now tracked: ${alreadyDecided.arrived}.`)
  if (alreadyDecided.uncertain > 0)
    say(`Records now uncertain, because of the transaction that their rows name: ${alreadyDecided.uncertain}.`)
  say(`Queued records, now ${as}: ${queued}.`)
  if (as === 'uncertain' && isOutboxInDoubt)
    say('Waiting rows that may have been sent become uncertain when a daemon captures them.')
  return 'done'
}
