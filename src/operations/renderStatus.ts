import type { ActivePause } from '../ledger/operator/readSubmissionDetail.ts'
import { escapeControl, pluralize, type Terminal, type TextFormat, truncateToOneLine } from '../plainText.ts'
import { formatDuration, formatInstant, formatInstantAndDistance } from '../time.ts'
import { rowsBeforeStartMessage, startPositionMessage } from './databaseMessages.ts'
import { type Diagnosis, type StatusReport, stopsSending } from './diagnose.ts'
import { countProblems } from './problemMessages.ts'
import { servicePerformanceMessage } from './serviceLevelTargets.ts'

type Row = readonly [name: string, message: string]

/** On a terminal, the verdict is green, yellow, or red if nothing is sent. */
export function renderStatus(report: StatusReport, terminal: Terminal | null = null): string {
  const [first, ...others] = report.diagnoses
  const [verdict = '', ...text] = [
    first.message,
    ...others.map(({ message }) => `Also: ${message}`),
    '',
    ...[...installationRows(report), ...recordRows(report), ...ledgerRows(report)].map(line),
  ].map(escapeControl)
  return [terminal?.style(colourOf(first), verdict) ?? verdict, ...text].map((each) => `${each}\n`).join('')
}

function colourOf(diagnosis: Diagnosis): TextFormat {
  if (diagnosis.isWell) return 'green'
  return stopsSending(diagnosis) ? 'red' : 'yellow'
}

export function renderStatusLine({
  diagnoses: [first, ...others],
  outbox,
  submissions,
  ...report
}: StatusReport): string {
  const name = report.installation === '' ? '' : `${report.installation}: `
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  const waiting = outbox.kind === 'read' ? outbox.outbox.waiting : '?'
  const figures = [
    `to send ${waiting} in the outbox and ${submissions.queued} captured`,
    `at the service ${submissions.accepted + submissions.sending}`,
    `need attention ${submissions.uncertain + submissions.failed + submissions.rejected}`,
    budgetClause(report),
  ].join(', ')
  return `${escapeControl(`${formatInstant(report.nowMs)} ${name}${first.message} | ${figures}${more}`)}\n`
}

const line = ([name, message]: Row): string => `${name.padEnd(15)} ${message}`

const installationRows = ({ installation }: StatusReport): Row[] =>
  installation === '' ? [] : [['installation', installation]]

/** Leaves out what has nothing to say, so that all is well in twelve lines. */
function recordRows(report: StatusReport): Row[] {
  const { submissions, probing, outbox, oldestMs, reportsDue, backlog, heldForPerson, nowMs } = report
  const waiting = outbox.kind === 'read' ? outbox.outbox.waiting : 'unknown'
  const asked =
    probing > 0 ? `, ${probing} uncertain (outboxd asks the service about ${probing === 1 ? 'it' : 'them'})` : ''
  const onTheWire = submissions.sending > probing ? `${submissions.sending - probing} on the wire, ` : ''
  const { uncertain, failed, rejected } = submissions
  const start = startPositionMessage(report.start)
  const hidden = outbox.kind === 'read' ? rowsBeforeStartMessage(outbox.rowsBeforeStart) : null
  const rows: Row[] = [
    ['to send', `${waiting} in the outbox, ${submissions.queued} captured`],
    ['at the service', `${onTheWire}${submissions.accepted} being processed${asked}`],
    ['needs attention', `${uncertain} uncertain, ${failed} failed, ${rejected} rejected`],
    ['ended', `${submissions.completed} completed, ${submissions.discarded} discarded`],
  ]
  if (reportsDue > 0) rows.push(['to write back', dueReportsClause(report)])
  if (oldestMs !== null) rows.push(['oldest unsent', `created ${formatInstantAndDistance(oldestMs, nowMs)}`])
  if (backlog?.records !== 0 || heldForPerson > 0)
    rows.push([
      'backlog',
      `${backlogClause(report)}${heldForPerson === 0 ? '' : `; ${heldRecordsClause(heldForPerson)}`}`,
    ])
  if (start !== null) rows.push(['start', hidden === null ? start : `${start} ${hidden}`])
  return rows
}

function ledgerRows(report: StatusReport): Row[] {
  const { rateHeldBack, nextFreeMs, recent, nowMs } = report
  const next = nextFreeMs === null ? '' : `, the next in ${formatDuration(nextFreeMs - nowMs)}`
  const left = rateHeldBack === 0 ? '' : `, ${rateHeldBack} left to another client`
  return [
    ['budget', `${budgetClause(report)}${next}${left}`],
    ['last hour', servicePerformanceMessage(recent.lastHour)],
    ['last day', servicePerformanceMessage(recent.lastDay)],
    ['last 28 days', servicePerformanceMessage(recent.last28Days)],
    ...pauseRows(report),
    ...problemRows(report),
    ...instanceRows(report),
  ]
}

/** "none due" does not mean that each row has its outcome: a row in conflict, for instance, gets no report. */
export function dueReportsClause({
  reportsDue,
  oldestReportDueMs,
  nowMs,
}: Pick<StatusReport, 'reportsDue' | 'oldestReportDueMs' | 'nowMs'>): string {
  if (reportsDue === 0) return 'none due'
  const oldest =
    oldestReportDueMs === null ? '' : `, the oldest from ${formatInstantAndDistance(oldestReportDueMs, nowMs)}`
  return `${pluralize(reportsDue, 'outcome')}${oldest}`
}

const budgetClause = ({ rateAvailable, rateCapacity }: Pick<StatusReport, 'rateAvailable' | 'rateCapacity'>): string =>
  rateCapacity === 0 ? 'unknown until the first daemon runs' : `${rateAvailable} of ${rateCapacity} requests free`

export function backlogClause({
  backlog,
  backlogStandsUntil,
  mayRowsWaitLonger,
  throughAtMs,
  pauses,
}: Pick<StatusReport, 'backlog' | 'backlogStandsUntil' | 'mayRowsWaitLonger' | 'throughAtMs' | 'pauses'>): string {
  if (backlog === null) return 'unknown'
  if (backlog.records === 0) return 'none'
  const polls = pluralize(Math.round(backlog.pollsPerRecord * 10) / 10, 'poll')
  const starts = [
    backlogStandsUntil === null ? null : `after ${backlogStandsUntil}`,
    pauses.length > 0 ? 'after the pause' : null,
  ].filter((start) => start !== null)
  const from = starts.map((start) => ` ${start}`).join(' and')
  const at = throughAtMs === null ? '' : `, at ${formatInstant(throughAtMs).slice(0, 16)}Z`
  const except = mayRowsWaitLonger
    ? ', except rows of the outbox that wait for a problem to end, or for a record of their key that needs attention'
    : ''
  return `sent in about ${formatDuration(Math.max(1_000, backlog.durationMs))}${from}${at}${except} (estimated from the rate limit and ${polls} a record)`
}

export const heldRecordsClause = (heldCount: number): string => `${heldCount} held behind records that need attention`

function pauseRows({ pauses, nowMs }: StatusReport): Row[] {
  return pauses.map((pause) => {
    const { reason, sinceMs, detail } = pause
    return [
      'paused',
      `${reason} since ${formatInstantAndDistance(sinceMs, nowMs)}, ${pauseEndText(pause, nowMs)}: ${truncateToOneLine(detail, 400)}`,
    ]
  })
}

export function pauseEndText({ reason, untilMs }: Pick<ActivePause, 'reason' | 'untilMs'>, nowMs: number): string {
  if (reason === 'standby') return 'until the ledger’s server has a synchronous standby'
  if (reason === 'history') return 'until `outboxd recover`'
  if (untilMs === null) return reason === 'operator' ? 'until `outboxd resume`' : 'until `outboxd resume --all`'
  return untilMs <= nowMs ? 'until one request succeeds' : `until ${formatInstantAndDistance(untilMs, nowMs)}`
}

const problemsShown = 20

function problemRows({ standing, problems, nowMs }: StatusReport): Row[] {
  const rows = standing.slice(0, problemsShown).map(({ kind, subject, detail, sinceMs, retryMs }): Row => {
    const retry =
      retryMs === null
        ? ''
        : `, tried again ${retryMs <= nowMs ? 'now' : `at ${formatInstantAndDistance(retryMs, nowMs)}`}`
    return [
      'problem',
      `${kind} ${subject} since ${formatInstantAndDistance(sinceMs, nowMs)}${retry}: ${truncateToOneLine(detail, 400)}`,
    ]
  })
  const more = countProblems(standing, problems) - rows.length
  return more > 0 ? [...rows, ['problem', `... and ${more} more: \`outboxd status --json\``]] : rows
}

function instanceRows(report: StatusReport): Row[] {
  const { instances, nowMs } = report
  if (instances.length === 0) return [['instances', noInstanceClause(report)]]
  return instances.map(({ id, host, version, startedMs }) => [
    'instance',
    `${id.slice(0, 8)} on ${host}, version ${version}, since ${formatInstantAndDistance(startedMs, nowMs)}`,
  ])
}

export function noInstanceClause({ readOnly, daemonConnected, lastSilentMs, nowMs }: StatusReport): string {
  if (readOnly !== null) return 'unknown while the database is read-only'
  const which = daemonConnected ? 'one connected, without a heartbeat' : 'none running'
  const heard = lastSilentMs === null ? '' : `; last heartbeat ${formatInstantAndDistance(lastSilentMs, nowMs)}`
  return `${which}${heard}`
}
