import { clockSkewMaxMs } from '../ledger/history/history.ts'
import type { LastRecovery } from '../ledger/operator/recover.ts'
import type { TableComparison } from '../outbox/comparison.ts'
import { pluralize } from '../plainText.ts'
import { formatInstant, formatIsoInstant } from '../time.ts'
import {
  countRowsNamingTransaction,
  type LedgerLoss,
  type RecordWithLostTransaction,
  type SuspectedLossDetail,
} from './recover.ts'

const rowsShown = 10

/** @param isDoubtGiven true if the operator gave --waiting or --no-waiting */
export function ledgerLossLines({ gap, history }: LedgerLoss, isDoubtGiven: boolean): string[] {
  const noticed = history === null ? [nothingNoticed] : historyMessages(history, isDoubtGiven)
  return [...noticed, ...gapMessages(gap)]
}

const nothingNoticed = 'No restore or failover of the ledger was noticed.'

function historyMessages(
  {
    found,
    doubtful,
    named,
    isMarkedOnCapture,
    isOutboxInDoubt,
    lockedWaitingRows,
    undatedRows,
    areUndatedRowsCut,
  }: SuspectedLossDetail,
  isDoubtGiven: boolean,
): string[] {
  const advice = (text: string) => (isDoubtGiven ? '' : ` ${text}`)
  const { queued, oldestMs, newestMs, onWire, accepted } = doubtful
  const span =
    oldestMs === null || newestMs === null
      ? ''
      : `, created from ${formatInstant(oldestMs)} to ${formatInstant(newestMs)}`
  const counted = ([count, name, then, isCut = false]: readonly [number, string, string, boolean?]) =>
    count === 0 ? [] : [`${name}: ${count}${isCut ? ' or more' : ''}. ${then}`]
  return [
    `The ledger may have lost committed data: ${found.detail}.`,
    `Found at ${formatInstant(found.atMs)} by ${found.by}. A daemon last found the ledger complete at ${formatInstant(found.lastMarkMs)}. It may not know what was sent after that, or after its backup.`,
    `Queued in the ledger, but perhaps already sent: ${pluralize(queued, 'record')}${span}.`,
    ...firstOf(
      namedRecords(named, 'arrived'),
      'Arrived, because their rows name the transaction (they are tracked, whatever --as says)',
    ),
    ...firstOf(
      namedRecords(named, 'uncertain'),
      'Uncertain, because their rows name a transaction that cannot be theirs (whatever --as says)',
    ),
    isOutboxInDoubt
      ? `Rows that wait in the outbox and were created before ${formatInstant(found.atMs + clockSkewMaxMs)} may have been sent: --as uncertain makes them uncertain. (That time allows for ${clockSkewMaxMs / 1000} s between the clocks.)${isMarkedOnCapture ? advice('If only the ledger was restored and no daemon was killed just before, none of these rows was sent: give --no-waiting.') : ' Their state does not show what was captured, so --no-waiting does not change that.'}`
      : `Rows that wait in the outbox count as never sent.${advice('The outbox was not restored. If it was, or if a daemon was killed just before, give --waiting.')}`,
    ...(
      [
        [onWire, 'Records being sent', 'For those whose daemon has died, UNCERTAIN_POLICY decides within seconds.'],
        [
          lockedWaitingRows.length,
          'Rows that wait, locked by a daemon that may have captured them',
          'They become what --as says.',
        ],
        [undatedRows.length, 'Rows that wait, without a date', 'All of them count as in doubt.', areUndatedRowsCut],
        [
          accepted,
          'Transactions still tracked',
          'If one fails with E002 or E003, it is not sent again by itself, because it may have been sent again already.',
        ],
      ] as const
    ).flatMap(counted),
  ]
}

type Becomes = 'arrived' | 'uncertain'

const namedRecords = (named: readonly RecordWithLostTransaction[], becomes: Becomes) =>
  named.filter(({ whyNotBelieved }) => (whyNotBelieved === null) === (becomes === 'arrived'))

function firstOf(named: readonly RecordWithLostTransaction[], name: string): string[] {
  if (named.length === 0) return []
  const lines = named.map(({ outboxId, said, transactionId }) => `  ${outboxId}  ${said ?? ''}  ${transactionId}`)
  return [`${name}: ${pluralize(named.length, 'record')}.`, ...firstLines(lines)]
}

function firstLines(lines: readonly string[]): string[] {
  const more = lines.length - rowsShown
  return more > 0 ? [...lines.slice(0, rowsShown), `  ... and ${more} more: --json shows more`] : [...lines]
}

function gapMessages({ canTell, isCut, rows }: TableComparison): string[] {
  if (!canTell && rows.length === 0)
    return [
      'The rows of this outbox show only their end, not that they were captured, so rows that the ledger lost cannot be found.',
    ]
  if (rows.length === 0)
    return [
      isCut
        ? 'Interrupted: nothing was found so far.'
        : 'No row that is marked as under way is missing in the ledger. Rows marked as ended were not compared.',
    ]
  const byState = [...Map.groupBy(rows, (row) => row.stateText)].map(([value, all]) => `${all.length} say ${value}`)
  const named = countRowsNamingTransaction(rows)
  const times = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const when =
    times.length === 0
      ? ''
      : times.length === 1
        ? `, created at ${times[0]}`
        : `, created from ${times[0]} to ${times.at(-1)}`
  const lines = rows.map(({ outboxId, stateText, createdAt, transactionId }) =>
    `  ${outboxId}  ${stateText}  ${createdAt ?? ''}  ${transactionId ?? ''}`.trimEnd(),
  )
  return [
    `${pluralize(rows.length, 'row')}${isCut ? ' or more' : ''} that the ledger does not know (${byState.join(', ')})${when}:`,
    ...firstLines(lines),
    ...(named > 0
      ? [`${named} of them name a transaction, so they have arrived: they are tracked, whatever --as says.`]
      : []),
  ]
}

export const lastRecoveryMessage = (last: LastRecovery | null): string | null =>
  last && `${last.who} recovered as ${last.as} at ${formatInstant(last.atMs)}. \`outboxd audit\` shows it.`

export const ledgerLossJson = ({ gap: { canTell, rows, isCut }, history }: LedgerLoss, last: LastRecovery | null) => ({
  canTell,
  isComplete: !isCut,
  rows: rows.map(({ outboxId, stateText: state, createdAt, transactionId }) => ({
    ...{ outboxId, state, createdAt, transactionId },
  })),
  lastRecovery: last && { who: last.who, at: formatIsoInstant(last.atMs), as: last.as },
  history: history && historyJson(history),
})

function historyJson({ found, doubtful, named, isOutboxInDoubt, lockedWaitingRows }: SuspectedLossDetail) {
  const ofKind = (becomes: Becomes) =>
    namedRecords(named, becomes).map(({ outboxId, said, transactionId }) => ({
      outboxId,
      becomes,
      said,
      transactionId,
    }))
  const [arrived, uncertain] = [ofKind('arrived'), ofKind('uncertain')]
  return {
    found: found.detail,
    foundAt: formatIsoInstant(found.atMs),
    foundBy: found.by,
    lastMarkAt: formatIsoInstant(found.lastMarkMs),
    before: found.agreed,
    now: found.now,
    queued: doubtful.queued,
    onWire: doubtful.onWire,
    accepted: doubtful.accepted,
    isOutboxInDoubt,
    rowsInHand: lockedWaitingRows.map(({ outboxId }) => outboxId),
    rowsSay: {
      arrived: arrived.length,
      uncertain: uncertain.length,
      open: doubtful.queued - named.filter(({ isQueued }) => isQueued).length,
      first: [...arrived.slice(0, rowsShown), ...uncertain.slice(0, rowsShown)],
    },
  }
}
