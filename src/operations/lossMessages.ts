import type { SuspectedLoss } from '../ledger/history/readHistory.ts'
import { clockSkewMaxMs } from '../ledger/history/writeHistory.ts'
import type { LastRecovery } from '../ledger/operator/recover.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import { pluralize } from '../plainText.ts'
import { isoTime, showTime } from '../time.ts'
import { countRowsNamingTransaction, type LedgerLoss, type LostHistory, type NamedLostRecord } from './recover.ts'

const rowsShown = 10
const namedShown = 5

export function ledgerLossMessages({ gap, history }: LedgerLoss): string[] {
  return [...(history === null ? [] : historyMessages(history)), ...gapMessages(gap, history !== null)]
}

function historyMessages({
  found,
  doubtful,
  named,
  isOutboxInDoubt,
  lockedWaitingRows,
  undatedRows,
}: LostHistory): string[] {
  const { queued, oldestMs, newestMs, onWire, accepted } = doubtful
  const span =
    oldestMs === null || newestMs === null ? '' : `, recorded from ${showTime(oldestMs)} to ${showTime(newestMs)}`
  const arrived = named.filter(({ whyNot }) => whyNot === null)
  const wrong = named.filter(({ whyNot }) => whyNot !== null)
  return [
    `The ledger may have lost committed data: ${found.detail}.`,
    `Found at ${showTime(found.atMs)} by ${found.by}. ${sinceWhen(found)}`,
    `Queued in the ledger, but perhaps already sent: ${pluralize(queued, 'record')}${span}.`,
    ...firstOf(arrived, 'Arrived, because their rows name the transaction (they are tracked, with either --as)'),
    ...firstOf(wrong, 'Uncertain, because their rows name a transaction that cannot be theirs (with either --as)'),
    ...count(
      onWire,
      'record',
      'Being sent, according to the ledger',
      'Those that no daemon works on become uncertain within seconds.',
    ),
    isOutboxInDoubt
      ? `Rows that wait in the outbox and were recorded before ${showTime(found.atMs + clockSkewMaxMs)} may have been sent: with --as uncertain they become uncertain. (That time allows for ${clockSkewMaxMs / 1000} s between the clocks.) If only the ledger was restored and no daemon was killed just before, give --no-waiting.`
      : 'Rows that wait in the outbox count as never sent, because the outbox was not restored. If it was, or if a daemon was killed just before, give --waiting.',
    ...count(
      lockedWaitingRows.length,
      'row',
      'Waiting, but locked by a daemon that may have captured them',
      'They become what --as says.',
    ),
    ...count(undatedRows.length, 'row', 'Waiting, without a date', 'All of them count as in doubt.'),
    ...count(
      accepted,
      'transaction',
      'Still tracked',
      'If one fails with E002 or E003, it is not sent again by itself, because that may have happened already.',
    ),
  ]
}

const count = (n: number, what: string, name: string, then: string): string[] =>
  n === 0 ? [] : [`${name}: ${pluralize(n, what)}. ${then}`]

const sinceWhen = ({ by, lastMarkMs }: SuspectedLoss): string =>
  by.startsWith('operator')
    ? 'The ledger may not know what was sent after its backup.'
    : `A daemon last found the ledger complete at ${showTime(lastMarkMs)}: it may not know what was sent after that.`

function firstOf(named: readonly NamedLostRecord[], name: string): string[] {
  if (named.length === 0) return []
  const more = named.length - namedShown
  return [
    `${name}: ${pluralize(named.length, 'record')}.`,
    ...named
      .slice(0, namedShown)
      .map(({ outboxId, said, transactionId }) => `  ${outboxId}  ${said ?? ''}  ${transactionId}`),
    ...(more > 0 ? [`  ... and ${more} more`] : []),
  ]
}

function gapMessages(gap: LedgerGap, isHistory: boolean): string[] {
  const { canTell, isCut, rows } = gap
  if (rows.length > 0) return rowsMessages(gap)
  if (!canTell)
    return [
      `The rows of this outbox show only their end, not that they were captured${isHistory ? '' : ', so lost ones cannot be found'}.`,
    ]
  return [
    isCut
      ? 'Interrupted: nothing was found so far.'
      : 'The ledger knows every row that is marked as under way. Rows marked as ended were not compared.',
  ]
}

function rowsMessages({ rows, isCut }: LedgerGap): string[] {
  const byState = [...Map.groupBy(rows, (row) => row.stateText)].map(([value, all]) => `${all.length} say ${value}`)
  const named = countRowsNamingTransaction(rows)
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
      ? [`${named} of them name a transaction, so they have arrived: they are tracked, with either --as.`]
      : []),
  ]
}

export const lastRecoveryMessage = (last: LastRecovery | null): string | null =>
  last && `${last.who} recovered as ${last.as} at ${showTime(last.atMs)}. \`outboxd audit\` shows it.`

export const ledgerLossJson = ({ gap: { canTell, rows, isCut }, history }: LedgerLoss, last: LastRecovery | null) => ({
  canTell,
  isComplete: !isCut,
  rows: rows.map(({ outboxId, stateText: state, createdAt, transactionId }) => ({
    ...{ outboxId, state, createdAt, transactionId },
  })),
  lastRecovery: last && { who: last.who, at: isoTime(last.atMs), as: last.as },
  history: history && historyJson(history),
})

function historyJson({ found, doubtful, named, isOutboxInDoubt, lockedWaitingRows }: LostHistory) {
  const becoming = (kind: 'arrived' | 'uncertain') =>
    named.filter(({ whyNot }) => (whyNot === null ? 'arrived' : 'uncertain') === kind)
  return {
    found: found.detail,
    foundAt: isoTime(found.atMs),
    foundBy: found.by,
    lastMarkAt: isoTime(found.lastMarkMs),
    before: found.agreed,
    now: found.now,
    queued: doubtful.queued,
    onWire: doubtful.onWire,
    accepted: doubtful.accepted,
    isOutboxInDoubt,
    rowsInHand: lockedWaitingRows.map(({ outboxId }) => outboxId),
    rowsSay: {
      arrived: becoming('arrived').length,
      uncertain: becoming('uncertain').length,
      open: doubtful.queued - named.filter(({ isQueued }) => isQueued).length,
      first: (['arrived', 'uncertain'] as const).flatMap((becomes) =>
        becoming(becomes)
          .slice(0, rowsShown)
          .map(({ outboxId, said, transactionId }) => ({ outboxId, becomes, said, transactionId })),
      ),
    },
  }
}
