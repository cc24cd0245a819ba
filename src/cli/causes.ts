import type { Cause } from '../ledger/operator/readCauses.ts'
import type { SubmissionFilter } from '../ledger/operator/selectSubmissions.ts'
import { renderTable, truncate } from './table.ts'
import { isoTime, isoTimeOrNull, showTime } from './time.ts'

/** What a list by cause was asked for. */
export interface AskedFilters {
  filter: SubmissionFilter
  containing: string | null
}

/** One line a cause, with the command that takes care of it. */
export function causesTable(causes: readonly Cause[], asked: AskedFilters): string {
  return renderTable(
    ['COUNT', 'CODE', 'STATE', 'SINCE', 'TYPE', 'REASON', 'COMMAND'],
    causes.map((cause) => [
      String(cause.count),
      truncate(cause.code ?? '-', 16),
      cause.mayHaveArrived ? `${cause.state}, may have arrived` : cause.state,
      showTime(cause.firstMs),
      truncate(cause.types.join(','), 24),
      truncate(cause.shape, 80) || '-',
      commandFor(cause, asked),
    ]),
  )
}

export function causeJson(cause: Cause, asked: AskedFilters) {
  const { count, code, state, mayHaveArrived, types, shape, firstMs, lastMs, firstOutboxId } = cause
  return {
    ...{ cause: cause.cause, count, state, code, mayHaveArrived, reason: shape, types },
    since: isoTime(firstMs),
    last: isoTime(lastMs),
    firstOutboxId,
    command: commandFor(cause, asked),
  }
}

/** The command for a cause's submissions, with the filters that match exactly these. Pure. */
export function commandFor({ cause, state, mayHaveArrived }: Cause, asked: AskedFilters): string {
  const filters = [`--state ${state} --cause ${cause}`, ...filterArguments(asked)].join(' ')
  const isReplayable = (state === 'failed' || state === 'rejected') && !mayHaveArrived
  if (isReplayable) return `outboxd replay ${filters}`
  if (state === 'uncertain' || mayHaveArrived)
    return `outboxd list ${filters} --csv > ask.csv, then outboxd resolve --file ask.csv`
  return `outboxd list ${filters}`
}

function filterArguments({ filter, containing }: AskedFilters): string[] {
  const given: [string, string | null][] = [
    ['type', filter.type],
    ['key', filter.key],
    ['since', isoTimeOrNull(filter.sinceMs)],
    ['until', isoTimeOrNull(filter.untilMs)],
    ['transaction', filter.transactionId],
    ['containing', containing],
  ]
  return given.flatMap(([name, value]) => (value === null ? [] : [`--${name} ${quoted(value)}`]))
}

/** As a shell takes it for one word. */
const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)
