import type { FoundHistory } from '../ledger/history/readHistory.ts'
import { clockSkewMaxMs } from '../ledger/history/writeHistory.ts'
import type { LastRecovery } from '../ledger/operator/recover.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import { pluralize } from '../plainText.ts'
import { isoTime, showTime } from '../time.ts'
import { countNamed, type Loss, type LostHistory, type Named } from './recover.ts'

const rowsShown = 10
const namedShown = 5

/** What was found, a sentence a line. */
export function lossMessages({ gap, history }: Loss): string[] {
  return [...(history === null ? [] : historyMessages(history)), ...gapMessages(gap, history !== null)]
}

function historyMessages({ found, doubtful, named, isOutboxInDoubt, inHandRows, undatedRows }: LostHistory): string[] {
  const { queued, oldestMs, newestMs, onWire, accepted } = doubtful
  const span =
    oldestMs === null || newestMs === null ? '' : `, recorded from ${showTime(oldestMs)} to ${showTime(newestMs)}`
  const arrived = named.filter(({ whyNot }) => whyNot === null)
  const wrong = named.filter(({ whyNot }) => whyNot !== null)
  return [
    `The ledger may have lost committed data: ${found.detail}.`,
    `Found at ${showTime(found.atMs)} by ${found.by}. ${sinceWhen(found)}`,
    `Queued in the ledger, and perhaps sent since: ${pluralize(queued, 'record')}${span}.`,
    ...firstOf(arrived, 'Arrived, because their rows name the transaction; tracked, whatever --as says'),
    ...firstOf(wrong, 'Uncertain, because their rows name a transaction that cannot be theirs, whatever --as says'),
    ...count(
      onWire,
      'record',
      'Being sent, as far as the ledger knows',
      'What no daemon has in hand becomes uncertain within seconds.',
    ),
    isOutboxInDoubt
      ? `Rows that wait in the outbox and were recorded before ${showTime(found.atMs + clockSkewMaxMs)} may have been sent: with --as uncertain they are captured as uncertain. (That is ${clockSkewMaxMs / 1000} s after it was found, because clocks differ.) If the ledger alone was restored, and the outbox was not, give --no-waiting.`
      : 'Rows that wait in the outbox count as never taken: they say so, and the outbox did not go back. If it was restored, too, or a daemon was killed just before the ledger went back, give --waiting.',
    ...count(
      inHandRows.length,
      'row',
      'Waiting, and in the hands of a daemon that may have captured them',
      'They are taken as --as says.',
    ),
    ...count(undatedRows.length, 'row', 'Waiting, and without a date', 'All that wait now count.'),
    ...count(
      accepted,
      'transaction',
      'Tracked on',
      'What fails with E002 or E003 is not sent again by itself, because that may have been done.',
    ),
  ]
}

/** A line with a number; none if it is 0. */
const count = (n: number, what: string, name: string, then: string): string[] =>
  n === 0 ? [] : [`${name}: ${pluralize(n, what)}. ${then}`]

/** Daemons' marks say nothing of a loss that a person reports. */
const sinceWhen = ({ by, lastMarkMs }: FoundHistory): string =>
  by.startsWith('operator')
    ? 'The ledger may not know what was sent since its backup.'
    : `A daemon last found it right at ${showTime(lastMarkMs)}: the ledger may not know what was sent after that.`

function firstOf(named: readonly Named[], name: string): string[] {
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
      `The rows of this outbox say only at their end that they were taken${isHistory ? '' : ', so nobody can tell which the ledger has lost'}.`,
    ]
  return [
    isCut
      ? 'Interrupted: nothing was found so far.'
      : 'The ledger knows every row that says it is under way. Rows that say they have come to their end were not compared.',
  ]
}

function rowsMessages({ rows, isCut }: LedgerGap): string[] {
  const byState = [...Map.groupBy(rows, (row) => row.stateText)].map(([value, all]) => `${all.length} say ${value}`)
  const named = countNamed(rows)
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
      ? [`${named} of them name a transaction, so they have arrived: they are tracked, whatever --as says.`]
      : []),
  ]
}

export const lastRecoveryMessage = (last: LastRecovery | null): string | null =>
  last && `${last.who} took it in as ${last.as} at ${showTime(last.atMs)}: outboxd audit shows it.`

export const lossJson = ({ gap: { canTell, rows, isCut }, history }: Loss, last: LastRecovery | null) => ({
  canTell,
  isComplete: !isCut,
  rows: rows.map(({ outboxId, stateText: state, createdAt, transactionId }) => ({
    ...{ outboxId, state, createdAt, transactionId },
  })),
  lastRecovery: last && { who: last.who, at: isoTime(last.atMs), as: last.as },
  history: history && historyJson(history),
})

function historyJson({ found, doubtful, named, isOutboxInDoubt, inHandRows }: LostHistory) {
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
    rowsInHand: inHandRows.map(({ outboxId }) => outboxId),
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
