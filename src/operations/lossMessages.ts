import type { FoundHistory } from '../ledger/history/readHistory.ts'
import { clocksDifferByMs } from '../ledger/history/writeHistory.ts'
import type { LastRecovery } from '../ledger/operator/recoverHistory.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import { pluralize } from '../plainText.ts'
import { isoTime, showTime } from '../time.ts'
import { countNamed, countOutcomes, type Doubt } from './doubts.ts'
import type { Loss, LostHistory } from './recover.ts'

const rowsShown = 10

/** What was found, for a person; one sentence a line. Pure. */
export function lossMessages({ gap, history }: Loss): string[] {
  return [...(history === null ? [] : historyMessages(history)), ...gapMessages(gap, history !== null)]
}

function historyMessages({ found, doubtful, doubts, isOutboxInDoubt, inHandRows, undatedRows }: LostHistory): string[] {
  const { queued, oldestMs, newestMs, onWire, accepted } = doubtful
  const span =
    oldestMs === null || newestMs === null ? '' : `, recorded from ${showTime(oldestMs)} to ${showTime(newestMs)}`
  return [
    `The ledger’s history is another than the daemons had agreed to: ${found.detail}.`,
    `Found at ${showTime(found.atMs)} by ${found.by}. ${sinceWhen(found)}`,
    `${pluralize(queued, 'record')} that the ledger has as queued may have been sent${span}.`,
    ...(onWire > 0
      ? [
          `${pluralize(onWire, 'record')} ${onWire === 1 ? 'was' : 'were'} being sent as far as the ledger knows: what no daemon has in hand becomes uncertain within seconds, whatever --as says, unless its row names a transaction.`,
        ]
      : []),
    ...doubtMessages(doubts),
    isOutboxInDoubt
      ? `Rows that wait in the outbox and were recorded before ${showTime(found.atMs + clocksDifferByMs)} may have been sent: with --as uncertain they are captured as uncertain. (That is ${clocksDifferByMs / 1000} s after it was found, because clocks differ.) If the ledger alone was restored, and the outbox was not, give --no-waiting.`
      : 'Rows that wait in the outbox count as never taken: they say so, and their database did not go back. If it was restored, too, or a daemon was killed just before the ledger went back, give --waiting.',
    ...(inHandRows.length > 0
      ? [
          `${pluralize(inHandRows.length, 'row')} that ${inHandRows.length === 1 ? 'waits' : 'wait'} a daemon has in hand, and may have captured: taken as --as says.`,
        ]
      : []),
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
          onWire: history.doubtful.onWire,
          accepted: history.doubtful.accepted,
          isOutboxInDoubt: history.isOutboxInDoubt,
          rowsInHand: history.inHandRows.map(({ outboxId }) => outboxId),
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
