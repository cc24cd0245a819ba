import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { type FoundHistory, readFoundHistory } from '../ledger/history/readHistory.ts'
import { logAct, type Operator } from '../ledger/operator/operator.ts'
import {
  type DoubtfulRecord,
  type DoubtfulRecords,
  type LostRecord,
  type NamedRecord,
  type RecoveredAs,
  readDoubtful,
  readDoubtfulRecords,
  readNamedTransactions,
  recoverHistory,
  recoverLost,
  recoverNamed,
  transactionTakenMessage,
} from '../ledger/operator/recover.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import { readClaimedUnmarked } from '../outbox/lockedRows.ts'
import { readNew } from '../outbox/readRows.ts'
import { type RowWithTransactionId, readRowsWithTransactionId } from '../outbox/rowsWithTransactionId.ts'
import { inTransaction } from '../postgres/database.ts'
import { batches } from './bulkChange.ts'
import { compareOutbox, findLostRows, mayWaitingBeSent, readReadable } from './compareDatabases.ts'
import { type Databases, withOutbox } from './databases.ts'
import { transactionIdProblem } from './readAnswersFile.ts'

export type LostRow = LedgerGap['rows'][number]

export interface Loss {
  gap: LedgerGap
  /** Transactions that several rows name. */
  shared: ReadonlySet<string>
  /** Null if the ledger's history is as agreed. */
  history: LostHistory | null
}

export interface LostHistory {
  found: FoundHistory
  doubtful: DoubtfulRecords
  /** Records whose rows name a transaction that the ledger does not know. */
  named: readonly Named[]
  /** Rows that wait and were recorded before may have been sent. */
  isOutboxInDoubt: boolean
  /** Rows that wait and that a daemon has claimed: the ledger may have had them. */
  inHandRows: readonly LostRow[]
  /** Rows that wait, are in doubt, and have no date. */
  undatedRows: readonly LostRow[]
}

export type Named = NamedRecord & Pick<RowWithTransactionId, 'said'>

/** Of more rows without a date, those written meanwhile are not told apart. */
const undatedMax = 10_000

export interface Reading {
  /** Returns false to end it. */
  goOn(): boolean
  onProgress(done: number, of: number): void
}

/**
 * Finds out what the ledger may have lost.
 * @param isWaitingToo whether the outbox went back, too; undefined if the operator does not say
 * @param sayer who says that the ledger was restored
 * @throws DatabaseUnusable if the outbox cannot be read
 */
export async function findLoss(
  databases: Databases,
  { isWaitingToo, sayer }: { isWaitingToo: boolean | undefined; sayer: string | undefined },
  reading: Reading,
): Promise<Loss> {
  const { ledger } = databases
  const found = await readFoundHistory(ledger, sayer)
  // Before the rows are compared, because a claimed row may say afterwards that it was taken.
  const inHand = found === null ? [] : await withOutbox(databases, readClaimedUnmarked)
  const gap = await findLostRows(databases, reading.goOn, found !== null)
  if (found === null) return { gap, shared: sharedTransactions(gap.rows), history: null }
  const isOutboxInDoubt = !gap.canTell || (isWaitingToo ?? (await mayWaitingBeSent(databases, found)))
  const waiting = isOutboxInDoubt ? await withOutbox(databases, (outbox) => readNew(outbox, undatedMax)) : []
  const lost = new Set(gap.rows.map(({ outboxId }) => outboxId))
  const inHandRows = waitingRows(inHand, lost, 'that it waits, and was in the hands of a daemon')
  const taken = lost.union(new Set(inHandRows.map(({ outboxId }) => outboxId)))
  const undated = waiting.filter(({ createdAt }) => createdAt === null)
  const undatedRows = waitingRows(undated, taken, 'that it waits')
  const { named, shared } = await readNamedRecords(databases, gap.rows, reading)
  const doubtful = await readDoubtful(ledger)
  return { gap, shared, history: { found, doubtful, named, isOutboxInDoubt, inHandRows, undatedRows } }
}

function waitingRows(
  rows: readonly Pick<OutboxRecord, 'outboxId' | 'stamp' | 'createdAt'>[],
  others: ReadonlySet<string>,
  stateText: string,
): LostRow[] {
  return rows.flatMap(({ outboxId, stamp, createdAt }) =>
    others.has(outboxId) ? [] : [{ outboxId, stamp: stamp ?? '', createdAt, stateText, transactionId: null }],
  )
}

const readAtOnce = 1_000

/** @param lost rows that the ledger does not know */
async function readNamedRecords(
  databases: Databases,
  lost: readonly LostRow[],
  { goOn, onProgress }: Reading,
): Promise<{ named: Named[]; shared: ReadonlySet<string> }> {
  const records = await readDoubtfulRecords(databases.ledger)
  const naming: (DoubtfulRecord & RowWithTransactionId & { heldBy: string | null })[] = []
  let read = 0
  for (const batch of batches(records, readAtOnce)) {
    if (!goOn()) break
    const ids = batch.map(({ outboxId }) => outboxId)
    const rows = await withOutbox(databases, (outbox) => readRowsWithTransactionId(outbox, ids))
    const rowsById = new Map(rows.map((row) => [row.outboxId, row]))
    const these = batch.flatMap((record) => {
      const row = rowsById.get(record.outboxId)
      return row === undefined ? [] : [{ ...record, ...row }]
    })
    const known = new Map((await readNamedTransactions(databases.ledger, these)).map((each) => [each.id, each]))
    for (const each of these) {
      const { isFormer = false, heldBy = null } = known.get(each.id) ?? {}
      if (!isFormer) naming.push({ ...each, heldBy })
    }
    read += batch.length
    onProgress(read, records.length)
  }
  const shared = sharedTransactions([...lost, ...naming])
  const named = naming.map(({ heldBy, ...record }) => {
    const { transactionId } = record
    const whyNot =
      heldBy === null ? whyNotBelieved(transactionId, shared) : transactionTakenMessage(transactionId, heldBy)
    return { ...record, whyNot }
  })
  return { named: named.filter(({ isQueued, whyNot }) => isQueued || whyNot === null), shared }
}

export function sharedTransactions(rows: readonly Pick<LostRow, 'transactionId'>[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(
    rows.flatMap(({ transactionId }) =>
      transactionId === null || seen.size < seen.add(transactionId).size ? [] : [transactionId],
    ),
  )
}

/** Why the transaction that a row names is not believed; null if it is. */
export function whyNotBelieved(transactionId: string, shared: ReadonlySet<string>): string | null {
  if (shared.has(transactionId)) return `its outbox row names transaction ${transactionId}, and so does another row`
  const problem = transactionIdProblem(transactionId)
  return problem && `its outbox row names a transaction that is none: ${problem}`
}

export const countNamed = (rows: readonly LostRow[]): number =>
  rows.filter(({ transactionId }) => transactionId !== null).length

export interface TakingIn extends Reading {
  databases: Databases
  operator: Operator
  mappings: Mappings
  onTaken(done: number, of: number): void
  say(sentence: string): void
}

/** `changed`: another finding stands, or another person was quicker. `incomplete`: rows are left for another run. */
export type TakenIn = 'done' | 'interrupted' | 'changed' | 'incomplete'

/** Takes in what the ledger has lost, in batches that stay. Sending goes on after the last one. */
export async function takeIn(parts: TakingIn, { gap, shared, history }: Loss, as: RecoveredAs): Promise<TakenIn> {
  const { databases, operator, goOn, say } = parts
  if (history !== null && (await readFoundHistory(databases.ledger))?.atMs !== history.found.atMs) return 'changed'
  const rows = [
    ...gap.rows,
    ...(history?.inHandRows ?? []),
    ...(as === 'uncertain' ? (history?.undatedRows ?? []) : []),
  ]
  const taken = await takeInRows(parts, rows, { as, shared })
  if (rows.length > 0) say(`Rows taken in as ${as}: ${taken}${exceptFor(countNamed(gap.rows))}.`)
  if (goOn() && taken < rows.length)
    say(`Rows left out because they are gone or cannot be read: ${rows.length - taken}.`)
  await compareAgain(parts)
  if (history === null && taken > 0) await logAct(operator.ledger, operator.actor, 'recover', { as, rows: taken })
  if (!goOn()) return 'interrupted'
  if (history === null) return 'done'
  return gap.isCut ? 'incomplete' : goOnAfter(parts, history, { as, lost: gap.rows, rows: taken })
}

/** Names an exception, as a sentence's end. */
export const exceptFor = (named: number): string => (named === 0 ? '' : `, but for ${named} that name a transaction`)

export async function compareAgain({
  databases,
  operator,
  goOn,
  say,
}: Pick<TakingIn, 'databases' | 'operator' | 'goOn' | 'say'>): Promise<void> {
  const toldAgain = await compareOutbox(databases, operator, goOn)
  if (toldAgain > 0) say(`Rows that say they are under way and have come to their end, told again: ${toldAgain}.`)
}

const batchSize = 100

async function takeInRows(
  { databases, operator, mappings, goOn, onTaken }: TakingIn,
  rows: readonly LostRow[],
  how: { as: RecoveredAs; shared: ReadonlySet<string> },
): Promise<number> {
  let taken = 0
  for (const batch of batches(rows, batchSize)) {
    if (!goOn()) break
    const records: LostRecord[] = []
    for (const row of batch) {
      const record = await readReadable(databases, mappings, row.outboxId)
      if (record !== null) records.push(keep(record, row, mappings, how))
    }
    await recoverLost(operator, records)
    taken += records.length
    onTaken(taken, rows.length)
  }
  return taken
}

/** The row as the ledger would have kept it. What does not map was never sent by us, so it is rejected. */
function keep(
  { unreadable, ...record }: OutboxRecord,
  { stateText, transactionId }: LostRow,
  mappings: Mappings,
  { as, shared }: { as: RecoveredAs; shared: ReadonlySet<string> },
): LostRecord {
  const id = uuidv7()
  const said = `said ${stateText}${transactionId === null ? '' : ` as transaction ${transactionId}`}`
  const kept = { ...record, id, idempotencyKey: randomUUID() }
  const mapped = mapOutboxRecord(mappings, { ...record, unreadable }, id)
  if (mapped.kind === 'refused') {
    const error = transactionId === null ? mapped.reason : `${mapped.reason}; its row ${said}: it has arrived`
    const { resource } = mapped
    return { ...kept, resource, body: null, tracked: true, sendsOwnId: false, transactionId, error }
  }
  const { resource, body, amounts, tracked, sendsOwnId } = mapped
  const given = { ...kept, resource, body, amounts, tracked, sendsOwnId, error: null }
  const whyNot = transactionId === null ? null : whyNotBelieved(transactionId, shared)
  if (whyNot !== null)
    return { ...given, transactionId: null, doubt: `the ledger had lost this row; ${whyNot}: it may have arrived` }
  const doubt =
    as === 'new' && transactionId === null ? null : `the ledger had lost this row, which ${said}: it may have arrived`
  return { ...given, transactionId, doubt }
}

/** Tracks what the rows name, then takes the rest as the person says, and lets sending go on. */
async function goOnAfter(
  parts: TakingIn,
  { found, named: seen, isOutboxInDoubt }: LostHistory,
  { as, lost, rows }: { as: RecoveredAs; lost: readonly LostRow[]; rows: number },
): Promise<TakenIn> {
  const { databases, operator, goOn, onTaken, say } = parts
  const before = { arrived: 0, uncertain: 0, rows }
  // What took a step since is looked at again, before anything is sent.
  for (let named = seen; named.length > 0; { named } = await readNamedRecords(databases, lost, parts)) {
    let done = 0
    for (const batch of batches(named, batchSize)) {
      if (!goOn()) return 'interrupted'
      if (!(await recoverNamed(operator, batch, found.atMs))) return 'changed'
      done += batch.length
      onTaken(done, named.length)
    }
    for (const { whyNot } of named) before[whyNot === null ? 'arrived' : 'uncertain'] += 1
    if (!goOn()) return 'interrupted'
  }
  const terms = { as, seenAtMs: found.atMs, isOutboxInDoubt, before }
  const queued = await inTransaction(operator.ledger, (db) => recoverHistory(db, terms, operator.actor))
  if (queued === null) return 'changed'
  if (before.arrived > 0) say(`Records that have arrived and are tracked: ${before.arrived}.`)
  if (before.uncertain > 0) say(`Records that are uncertain because of what their rows name: ${before.uncertain}.`)
  say(`Queued records taken as ${as}: ${queued}.`)
  return 'done'
}
