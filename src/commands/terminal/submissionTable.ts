import type { FailureCause } from '../../ledger/operator/search.ts'
import type { ListedSubmission, SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import type { State } from '../../model/submission.ts'
import { mayHaveArrivedCell } from '../../operations/submissionFacts.ts'
import { quoteForShell, renderColumns, type Terminal, type TextFormat, truncateToOneLine } from '../../plainText.ts'
import { formatInstant, formatIsoInstant, formatIsoInstantOrNull, replaceEpochMsByIsoTimes } from '../../time.ts'

type Columns = Readonly<Record<string, (submission: ListedSubmission) => string>>

const colourOfState: Readonly<Record<State, TextFormat>> = {
  queued: 'gray',
  sending: 'blue',
  accepted: 'cyan',
  completed: 'green',
  failed: 'red',
  rejected: 'magenta',
  uncertain: 'yellow',
  discarded: 'dim',
}

/** On a terminal, states have colours, and an id is its last eight digits, which commands take. */
export function submissionTable(submissions: readonly ListedSubmission[], terminal: Terminal | null = null): string {
  const columns: Columns = {
    ID: ({ id }) => (terminal === null ? id : id.slice(-8)),
    OUTBOX: ({ outboxId }) => truncateToOneLine(outboxId, 36),
    TYPE: ({ type }) => truncateToOneLine(type, 24),
    KEY: ({ key }) => truncateToOneLine(key ?? '-', 24),
    STATE: ({ state }) => state,
    CODE: ({ code }) => truncateToOneLine(code ?? '-', 16),
    SINCE: ({ sinceMs }) => formatInstant(sinceMs),
    NOTE: mayHaveArrivedCell,
    ERROR: ({ error }) => truncateToOneLine(error ?? '', Math.max(80, terminal?.columns ?? 0)),
  }
  return renderColumns(submissions, columns, terminal, (column, cell) =>
    column === 'STATE' ? colourOfState[cell as State] : undefined,
  )
}

export const submissionJson = ({ revision: _, wasSent: __, ...submission }: ListedSubmission) =>
  replaceEpochMsByIsoTimes(submission)

interface AskedFilters {
  filter: SubmissionFilter
  containing: string | null
}

export function causesTable(causes: readonly FailureCause[], asked: AskedFilters): string {
  return renderColumns(causes, {
    COUNT: ({ count }) => String(count),
    CODE: ({ code }) => truncateToOneLine(code ?? '-', 16),
    STATE: ({ state, mayHaveArrived }) => (mayHaveArrived ? `${state}, may have arrived` : state),
    SINCE: ({ firstMs }) => formatInstant(firstMs),
    TYPE: ({ types }) => truncateToOneLine(types.join(','), 24),
    REASON: ({ shape }) => truncateToOneLine(shape, 80) || '-',
    COMMAND: (cause) => commandForCause(cause, asked),
  })
}

export function causeJson(cause: FailureCause, asked: AskedFilters) {
  const { count, code, state, mayHaveArrived, types, shape, firstMs, lastMs, firstOutboxId } = cause
  return {
    ...{ cause: cause.cause, count, state, code, mayHaveArrived, reason: shape, types },
    since: formatIsoInstant(firstMs),
    last: formatIsoInstant(lastMs),
    firstOutboxId,
    command: commandForCause(cause, asked),
  }
}

/** True if the line's command is `outboxd replay`. */
export const isReplayable = ({ state, mayHaveArrived }: FailureCause) =>
  (state === 'failed' || state === 'rejected') && !mayHaveArrived

function commandForCause(failureCause: FailureCause, asked: AskedFilters): string {
  const { cause, state, mayHaveArrived, changedAfterSent } = failureCause
  const filters = [`--state ${state} --cause ${cause}`, ...filterArguments(asked)].join(' ')
  if (isReplayable(failureCause)) return `outboxd replay ${filters}`
  if (changedAfterSent) return `outboxd list ${filters}, then outboxd show each`
  if (state === 'uncertain' || mayHaveArrived)
    return `outboxd list ${filters} --csv > ask.csv, fill in arrived_as, then outboxd resolve --file ask.csv`
  return `outboxd list ${filters}`
}

function filterArguments({ filter, containing }: AskedFilters): string[] {
  const given: [string, string | null][] = [
    ['type', filter.type],
    ['key', filter.key],
    ['since', formatIsoInstantOrNull(filter.sinceMs)],
    ['until', formatIsoInstantOrNull(filter.untilMs)],
    ['transaction', filter.transactionId],
    ['containing', containing],
  ]
  return given.flatMap(([name, value]) => (value === null ? [] : [`--${name} ${quoteForShell(value)}`]))
}
