import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { pluralize } from '../cli/table.ts'
import { isoTime, showTime } from '../cli/time.ts'
import type { FoundHistory } from '../ledger/history/readHistory.ts'
import type { SettledDoubt } from '../ledger/operator/recoverDoubtful.ts'
import type { DoubtfulRecords, LastRecovery, RecoveredAs } from '../ledger/operator/recoverHistory.ts'
import type { LostRecord } from '../ledger/operator/recoverRecords.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapOutboxRecord.ts'
import type { LedgerGap } from '../store/ledgerGap.ts'
import type { OperatorChanges } from '../store/operatorChanges.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { batches } from './bulkChange.ts'
import { countOutcomes, type Doubt, type LostRow, readDoubts, sharedTransactions, whyNotBelieved } from './doubts.ts'

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
  /** Of these the ones whose table does not say when they were recorded, as they stand now. */
  undatedRows: readonly LostRow[]
}

/** More rows that nobody can date are not told from those that are written meanwhile. */
const undatedMax = 10_000

/**
 * Finds out what the ledger may have lost.
 *
 * @param isWaitingToo an operator knows that the outbox went back as well, wherever it is
 * @param sayer who says that the ledger was put back, where nobody may have noticed
 * @param reading `goOn` is asked now and then, and `onProgress` told how many rows of doubtful records were read
 */
export async function findLoss(
  store: OperatorStore,
  { isWaitingToo, sayer }: { isWaitingToo: boolean; sayer: string | undefined },
  reading: Parameters<typeof readDoubts>[2],
): Promise<Loss> {
  const { goOn } = reading
  const found = await store.readFoundHistory(sayer)
  const gap = await store.findGap(goOn, found !== null)
  if (found === null) return { gap, shared: sharedTransactions(gap.rows), history: null }
  const isOutboxInDoubt = isWaitingToo || !gap.canTell || (await store.mayWaitingBeSent())
  const waiting = isOutboxInDoubt ? await store.outbox.readNew(undatedMax) : []
  const undatedRows = waiting.flatMap(({ outboxId, stamp, createdAt }) =>
    createdAt === null
      ? [{ outboxId, stamp: stamp ?? '', createdAt, stateText: 'that it waits', transactionId: null }]
      : [],
  )
  const { doubts, shared } = await readDoubts(store, gap.rows, reading)
  const doubtful = await store.readDoubtful()
  return { gap, shared, history: { found, doubtful, doubts, isOutboxInDoubt, undatedRows } }
}

const batchSize = 100
const rowsShown = 10

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

/** What was found, for a person; one sentence a line. Pure. */
export function lossMessages({ gap, history }: Loss): string[] {
  return [...(history === null ? [] : historyMessages(history)), ...gapMessages(gap, history !== null)]
}

function historyMessages({ found, doubtful, doubts, isOutboxInDoubt, undatedRows }: LostHistory): string[] {
  const { queued, oldestMs, newestMs, accepted } = doubtful
  const span =
    oldestMs === null || newestMs === null ? '' : `, recorded from ${showTime(oldestMs)} to ${showTime(newestMs)}`
  return [
    `The ledger’s history is another than the daemons had agreed to: ${found.detail}.`,
    `Found at ${showTime(found.atMs)} by ${found.by}. ${sinceWhen(found)}`,
    ...(found.mayGoOn
      ? ['Every claim had been waited for by a synchronous standby: it goes on by itself within seconds.']
      : []),
    `${pluralize(queued, 'record')} that the ledger has as queued may have been sent${span}.`,
    ...doubtMessages(doubts),
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

/** What a person has noticed no daemon has, so that their marks say nothing. */
const sinceWhen = ({ by, lastMarkMs }: FoundHistory): string =>
  by.startsWith('operator')
    ? 'What was sent since its backup the ledger may not know.'
    : `A daemon had last found it as it was at ${showTime(lastMarkMs)}: what was sent from then on the ledger may not know.`

/** What the rows of doubtful records say, where they say anything. */
function doubtMessages(doubts: readonly Doubt[]): string[] {
  const { arrived, uncertain, open } = countOutcomes(doubts)
  if (arrived + uncertain === 0) return []
  const others = doubts.filter(({ record }) => record.isOnlyByName).length
  return [
    ...(arrived === 0
      ? []
      : [
          `${arrived} of them have arrived${others === 0 ? '' : ` (${others} that the ledger does not have as queued among them)`}: their rows name the transaction. These are not sent again, but tracked on, whatever --as says:`,
          ...firstDoubts(doubts, 'arrived'),
        ]),
    ...(uncertain === 0
      ? []
      : [
          `${uncertain} of them become uncertain, whatever --as says: their rows say that they came to their end, or name a transaction that cannot be theirs:`,
          ...firstDoubts(doubts, 'uncertain'),
        ]),
    `${open} of them are taken as --as says.`,
  ]
}

const doubtsShown = 5

function firstDoubts(doubts: readonly Doubt[], kind: Doubt['outcome']['kind']): string[] {
  const those = doubts.filter(({ outcome }) => outcome.kind === kind)
  const more = those.length - doubtsShown
  return [
    ...those
      .slice(0, doubtsShown)
      .map(({ record, said, transactionId }) =>
        `  ${record.outboxId}  ${said ?? 'queued'}  ${transactionId ?? ''}`.trimEnd(),
      ),
    ...(more > 0 ? [`  ... and ${more} more`] : []),
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
  const named = rows.filter(({ transactionId }) => transactionId !== null).length
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
    ...(named > 0
      ? [`${named} of them name a transaction, so they have arrived: they are tracked on, whatever --as says.`]
      : []),
  ]
}

/** Who took in last what the ledger had lost, as a sentence; null where nobody did. Pure. */
export const lastRecoveryMessage = (last: LastRecovery | null): string | null =>
  last && `${last.who} took it in as ${last.as} at ${showTime(last.atMs)}: outboxd audit shows it.`

/** The same for programs. Pure. */
export const lossJson = ({ gap: { canTell, rows, isCut }, history }: Loss, last: LastRecovery | null) => ({
  canTell,
  isComplete: !isCut,
  rows: rows.map(({ outboxId, stateText: state, createdAt, transactionId }) => ({
    outboxId,
    state,
    createdAt,
    transactionId,
  })),
  lastRecovery: last && { who: last.who, at: isoTime(last.atMs), as: last.as },
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
          rowsSay: {
            ...countOutcomes(history.doubts),
            first: (['arrived', 'uncertain'] as const).flatMap((kind) =>
              history.doubts
                .filter(({ outcome }) => outcome.kind === kind)
                .slice(0, rowsShown)
                .map(({ record, said, transactionId }) => ({
                  outboxId: record.outboxId,
                  becomes: kind,
                  said,
                  transactionId,
                })),
            ),
          },
        },
})
