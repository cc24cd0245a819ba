import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { pluralize } from '../cli/table.ts'
import { isoTime, showTime } from '../cli/time.ts'
import type { FoundHistory } from '../ledger/history/readHistory.ts'
import type { DoubtfulRecords, RecoveredAs } from '../ledger/operator/recoverHistory.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapOutboxRecord.ts'
import type { CapturedRecord } from '../model.ts'
import type { LedgerGap } from '../store/ledgerGap.ts'
import type { OperatorChanges } from '../store/operatorChanges.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { batches } from './bulkChange.ts'

type TakenRow = LedgerGap['rows'][number]

/** What the ledger may have lost. */
export interface Loss {
  /** Rows that say they were taken and that it does not know. */
  gap: LedgerGap
  /** It went back in time; null where its history is as the daemons have agreed to. */
  history: LostHistory | null
}

export interface LostHistory {
  found: FoundHistory
  doubtful: DoubtfulRecords
  /** Rows that wait and were recorded before may have been captured and sent. */
  isOutboxInDoubt: boolean
  /** Of these the ones whose table does not say when they were recorded, as they stand now. */
  undatedRows: readonly TakenRow[]
}

/** More rows that nobody can date are not told from those that are written meanwhile. */
const undatedMax = 10_000

/**
 * Finds out what the ledger may have lost.
 *
 * @param isWaitingToo an operator knows that the outbox went back as well, wherever it is
 */
export async function findLoss(store: OperatorStore, isWaitingToo: boolean, goOn: () => boolean): Promise<Loss> {
  const found = await store.readFoundHistory()
  const gap = await store.findGap(goOn)
  if (found === null) return { gap, history: null }
  const isOutboxInDoubt = isWaitingToo || !gap.canTell || (await store.isOutboxBeside())
  const waiting = isOutboxInDoubt ? await store.outbox.readNew(undatedMax) : []
  const undatedRows = waiting.flatMap(({ outboxId, stamp, createdAt }) =>
    createdAt === null
      ? [{ outboxId, stamp: stamp ?? '', createdAt, stateText: 'that it waits', transactionId: null }]
      : [],
  )
  return { gap, history: { found, doubtful: await store.readDoubtful(), isOutboxInDoubt, undatedRows } }
}

const batchSize = 100
const rowsShown = 10

/** @returns how many were taken in, before `goOn` said no */
export async function takeInRows(
  {
    outbox,
    changes,
    mappings,
    goOn,
  }: {
    outbox: Pick<OperatorStore['outbox'], 'readRecord'>
    changes: Pick<OperatorChanges, 'recover'>
    mappings: Mappings
    goOn: () => boolean
  },
  rows: readonly TakenRow[],
  as: RecoveredAs,
): Promise<number> {
  let taken = 0
  for (const batch of batches(rows, batchSize)) {
    if (!goOn()) break
    const records: CapturedRecord[] = []
    for (const row of batch) {
      const record = await readKept(outbox, mappings, row, as)
      if (record !== null) records.push(record)
    }
    await changes.recover(records)
    taken += records.length
  }
  return taken
}

/** The row as the ledger would have kept it; null where it is gone. What does not map cannot have been sent: it is rejected. */
async function readKept(
  outbox: Pick<OperatorStore['outbox'], 'readRecord'>,
  mappings: Mappings,
  { outboxId, stateText, transactionId }: TakenRow,
  as: RecoveredAs,
): Promise<CapturedRecord | null> {
  const row = await outbox.readRecord(outboxId)
  if (row === null) return null
  const id = uuidv7()
  const { unreadable: _, ...record } = row
  const kept = { ...record, id, idempotencyKey: randomUUID() }
  const mapped = mapOutboxRecord(mappings, row, id)
  if (mapped.kind === 'refused')
    return { ...kept, resource: mapped.resource, body: null, tracked: true, sendsOwnId: false, error: mapped.reason }
  const { resource, body, amounts, tracked, sendsOwnId } = mapped
  const named = transactionId === null ? '' : ` as transaction ${transactionId}`
  const doubt =
    as === 'new' ? null : `the ledger had lost this row, which said ${stateText}${named}: it may have arrived`
  return { ...kept, resource, body, amounts, tracked, sendsOwnId, error: null, doubt }
}

/** What was found, for a person; one sentence a line. Pure. */
export function lossMessages({ gap, history }: Loss): string[] {
  return [...(history === null ? [] : historyMessages(history)), ...gapMessages(gap, history !== null)]
}

function historyMessages({ found, doubtful, isOutboxInDoubt, undatedRows }: LostHistory): string[] {
  const { queued, oldestMs, newestMs, accepted } = doubtful
  const span =
    oldestMs === null || newestMs === null ? '' : `, recorded from ${showTime(oldestMs)} to ${showTime(newestMs)}`
  return [
    `The ledger’s history is another than the daemons had agreed to: ${found.detail}.`,
    `Found at ${showTime(found.atMs)} by ${found.by}. A daemon had last found it as it was at ${showTime(found.lastMarkMs)}: what was sent from then on the ledger may not know.`,
    ...(found.mayGoOn
      ? ['Every claim had been waited for by a synchronous standby: it goes on by itself within seconds.']
      : []),
    `${pluralize(queued, 'record')} that the ledger has as queued may have been sent${span}.`,
    isOutboxInDoubt
      ? `Rows that wait in the outbox and were recorded before ${showTime(found.atMs)} may have been sent: with --as uncertain they are captured as uncertain.`
      : 'Rows that wait in the outbox count as never taken: they say so, and their database is another. If it was restored, too, give --waiting.',
    ...(undatedRows.length > 0
      ? [
          `${pluralize(undatedRows.length, 'row')} of these ${undatedRows.length === 1 ? 'does' : 'do'} not say when they were recorded: all that wait now count.`,
        ]
      : []),
    ...(accepted > 0
      ? [
          `${pluralize(accepted, 'transaction')} ${accepted === 1 ? 'is' : 'are'} tracked on; what fails with E002 or E003 is not sent again by itself, since that may have been done.`,
        ]
      : []),
  ]
}

function gapMessages(gap: LedgerGap, isHistory: boolean): string[] {
  const { canTell, isCut, rows } = gap
  if (rows.length > 0) return rowsMessages(gap)
  if (!canTell)
    return isHistory
      ? ['The rows of this outbox say only at their end that they were taken.']
      : [
          'The rows of this outbox say only at their end that they were taken, so nobody can tell which the ledger has lost.',
        ]
  return [
    isCut
      ? 'Interrupted: nothing was found so far.'
      : 'The ledger knows every row that says it is under way. Rows that say they have come to their end were not compared.',
  ]
}

function rowsMessages({ rows, isCut }: LedgerGap): string[] {
  const byState = [...Map.groupBy(rows, (row) => row.stateText)].map(([value, all]) => `${all.length} say ${value}`)
  const times = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const when = times.length === 0 ? '' : `, recorded from ${times[0]} to ${times.at(-1)}`
  return [
    `${pluralize(rows.length, 'row')}${isCut ? ' or more' : ''} that the ledger does not know (${byState.join(', ')})${when}:`,
    ...rows
      .slice(0, rowsShown)
      .map(({ outboxId, stateText: value, createdAt, transactionId }) =>
        `  ${outboxId}  ${value}  ${createdAt ?? ''}  ${transactionId ?? ''}`.trimEnd(),
      ),
    ...(rows.length > rowsShown ? [`  ... and ${rows.length - rowsShown} more: --json shows all`] : []),
  ]
}

/** The same for programs. Pure. */
export const lossJson = ({ gap: { canTell, rows, isCut }, history }: Loss) => ({
  canTell,
  isComplete: !isCut,
  rows: rows.map(({ outboxId, stateText: state, createdAt, transactionId }) => ({
    outboxId,
    state,
    createdAt,
    transactionId,
  })),
  history:
    history === null
      ? null
      : {
          found: history.found.detail,
          foundAt: isoTime(history.found.atMs),
          foundBy: history.found.by,
          lastMarkAt: isoTime(history.found.lastMarkMs),
          before: history.found.agreed,
          now: history.found.now,
          queued: history.doubtful.queued,
          accepted: history.doubtful.accepted,
          isOutboxInDoubt: history.isOutboxInDoubt,
        },
})
