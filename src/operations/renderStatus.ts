import { standbyMissingMessage } from '../ledger/history/writeHistory.ts'
import type { ActivePause } from '../ledger/operator/readSubmissionDetail.ts'
import type { ProblemKind, State } from '../model.ts'
import { escapeControl, pluralize, truncate } from '../plainText.ts'
import { showDuration, showMoment, showTime } from '../time.ts'
import { hiddenRowsMessage, startPositionMessage } from './databaseMessages.ts'
import type { StatusReport } from './diagnose.ts'
import { addRequestCounts, performanceFromCounts, performanceMessage } from './serviceTargets.ts'

type Row = readonly [name: string, message: string]

export function renderStatus(report: StatusReport): string {
  return lines([...sentences(report), '', ...[...flowRows(report), ...ledgerRows(report)].map(line)])
}

export function renderLedgerHalf(report: StatusReport): string {
  return lines([...sentences(report), '', ...[...atServiceRows(report), ...ledgerRows(report)].map(line)])
}

export function renderOutboxHalf(report: StatusReport, shownBefore: StatusReport): string {
  const before = new Set(shownBefore.diagnoses.map(({ message }) => message))
  const news = report.diagnoses.flatMap(({ message }) => (before.has(message) ? [] : [message]))
  return lines(['', ...news, ...outboxRows(report).map(line)])
}

export function renderStatusLine({
  diagnoses: [first, ...others],
  outbox,
  submissions,
  ...report
}: StatusReport): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  const waiting = outbox.kind === 'read' ? outbox.outbox.waiting : '?'
  const figures = [
    `to send ${waiting}+${captured(submissions, report)}`,
    `at the service ${submissions.accepted + report.probing}`,
    `need attention ${submissions.uncertain + submissions.failed + submissions.rejected}`,
    `${report.rateAvailable} of ${report.rateCapacity} requests free`,
  ].join(', ')
  return lines([`${showTime(report.nowMs)} ${first.message} | ${figures}${more}`])
}

const lines = (all: readonly string[]): string => all.map((text) => `${escapeControl(text)}\n`).join('')
const line = ([name, message]: Row): string => `${name.padEnd(15)} ${message}`

function sentences({ diagnoses: [first, ...others] }: StatusReport): string[] {
  return [first.message, ...others.map(({ message }) => `Also: ${message}`)]
}

function flowRows(report: StatusReport): Row[] {
  const [toSend, ...rest] = outboxRows(report)
  return [...(toSend ? [toSend] : []), ...atServiceRows(report), ...rest]
}

function outboxRows(report: StatusReport): Row[] {
  const { submissions, outbox, oldestMs, nowMs } = report
  const waiting = outbox.kind === 'read' ? outbox.outbox.waiting : 'unknown'
  return [
    ['to send', `${waiting} in the outbox, ${captured(submissions, report)} captured`],
    ['oldest unsent', oldestMs === null ? 'none' : `recorded ${showMoment(oldestMs, nowMs)}`],
    ['backlog', `${backlogMessage(report)}${heldRecordsMessage(report.heldForPerson)}`],
    ...startRows(report),
  ]
}

function atServiceRows({ submissions, ...report }: StatusReport): Row[] {
  return [
    [
      'at the service',
      `${submissions.accepted} being processed${report.probing > 0 ? `, ${report.probing} uncertain that it is asked about` : ''}`,
    ],
    ['needs attention', needAttention(submissions)],
    ['ended', `${submissions.completed} completed, ${submissions.discarded} discarded`],
    ['to write back', dueReportsMessage(report)],
  ]
}

function ledgerRows(report: StatusReport): Row[] {
  const { rateAvailable, rateCapacity, nextSlotMs, nowMs } = report
  return [
    ['budget', `${rateAvailable} of ${rateCapacity} requests free${nextSlot(nextSlotMs, nowMs)}`],
    ['last hour', performanceMessage(performanceFromCounts(addRequestCounts(report.recent.lastHour)))],
    ['last day', performanceMessage(performanceFromCounts(addRequestCounts(report.recent.lastDay)))],
    ['last 28 days', performanceMessage(performanceFromCounts(addRequestCounts(report.recent.last28Days)))],
    ...pauseRows(report),
    ...problemRows(report),
    ...instanceRows(report),
  ]
}

const captured = ({ queued, sending }: Record<State, number>, { probing }: Pick<StatusReport, 'probing'>): number =>
  queued + sending - probing

function needAttention(submissions: Record<State, number>): string {
  return `${submissions.uncertain} uncertain, ${submissions.failed} failed, ${submissions.rejected} rejected`
}

/**
 * Says how many outcomes are not written back. "None" needs no due report, an outbox that was just read, and no problem
 * of `outcomeBlockingProblems`.
 */
export function dueReportsMessage({
  reportsDue,
  oldestReportDueMs,
  outbox,
  standing,
  nowMs,
}: Pick<StatusReport, 'reportsDue' | 'oldestReportDueMs' | 'outbox' | 'standing' | 'nowMs'>): string {
  if (reportsDue > 0) {
    const oldest = oldestReportDueMs === null ? '' : `, the oldest from ${showMoment(oldestReportDueMs, nowMs)}`
    return `${pluralize(reportsDue, 'outcome')}${oldest}`
  }
  if (outbox.kind !== 'read') return 'none is due, but the outbox could not be read'
  const against = standing.filter(({ kind }) => outcomeBlockingProblems.has(kind))
  return against.length === 0
    ? 'none: the outbox has every outcome'
    : `none is due, but ${pluralize(against.length, 'problem')} below may keep outcomes from rows`
}

/** During these problems, a row may differ from the ledger although no report is due. */
export const outcomeBlockingProblems: ReadonlySet<ProblemKind> = new Set([
  ...(['report_refused', 'report_locked', 'mark_ineffective', 'row_missing', 'row_conflict'] as const),
  ...(['foreign_outbox', 'foreign_ledger', 'ledger_behind', 'ledger_history'] as const),
])

function nextSlot(nextSlotMs: number | null, nowMs: number): string {
  return nextSlotMs === null ? '' : `, the next in ${showDuration(nextSlotMs - nowMs)}`
}

export function backlogMessage({
  backlog,
  backlogStandsUntil,
  throughAtMs,
  pauses,
  nowMs,
}: Pick<StatusReport, 'backlog' | 'backlogStandsUntil' | 'throughAtMs' | 'pauses' | 'nowMs'>): string {
  if (backlog === null) return 'unknown'
  if (backlog.records === 0) return 'none'
  const polls = Math.round(backlog.pollsPerRecord * 10) / 10
  const starts = [
    backlogStandsUntil === null ? null : `after ${backlogStandsUntil}`,
    pauses.length > 0 ? 'after the pause' : null,
  ].filter((start) => start !== null)
  const from = starts.map((start) => ` ${start}`).join(' and')
  const at = throughAtMs === null ? '' : `, at ${showClock(throughAtMs, nowMs)}`
  return `sent in about ${showDuration(Math.max(1_000, backlog.durationMs))}${from}${at} (an estimate: the rate limit, ${polls} polls a record)`
}

function showClock(ms: number, nowMs: number): string {
  const [date, time = ''] = showTime(ms).split(' ')
  const clock = `${time.slice(0, 5)}Z`
  return showTime(nowMs).startsWith(`${date} `) ? clock : `${date} ${clock}`
}

export function heldRecordsMessage(held: number): string {
  return held === 0 ? '' : `; ${held} more held behind records that need attention`
}

function startRows({ start, outbox }: StatusReport): Row[] {
  const message = startPositionMessage(start)
  const hidden = outbox.kind === 'read' ? hiddenRowsMessage(outbox.hidden) : null
  return message === null ? [] : [['start', [message, hidden ?? []].flat().join(' ')]]
}

function pauseRows({ pauses, nowMs }: StatusReport): Row[] {
  if (pauses.length === 0) return [['paused', 'no']]
  return pauses.map((pause) => {
    const { reason, sinceMs, detail } = pause
    return [
      'paused',
      `${reason} since ${showMoment(sinceMs, nowMs)}, ${pauseEndText(pause, nowMs)}: ${truncate(detail, 400)}`,
    ]
  })
}

export function pauseEndText(
  { reason, untilMs, detail }: Pick<ActivePause, 'reason' | 'untilMs' | 'detail'>,
  nowMs: number,
): string {
  if (detail === standbyMissingMessage) return 'until a COMMIT waits for a standby'
  if (untilMs === null) return `until outboxd ${reason === 'history' ? 'recover' : 'resume'}`
  return untilMs <= nowMs ? 'until one request succeeds' : `until ${showMoment(untilMs, nowMs)}`
}

const problemsShown = 20

function problemRows({ standing, nowMs }: StatusReport): Row[] {
  const rows = standing.slice(0, problemsShown).map(({ kind, subject, detail, sinceMs, retryMs }): Row => {
    const retry =
      retryMs === null ? '' : `, tried again ${retryMs <= nowMs ? 'now' : `at ${showMoment(retryMs, nowMs)}`}`
    return ['problem', `${kind} ${subject} since ${showMoment(sinceMs, nowMs)}${retry}: ${truncate(detail, 400)}`]
  })
  const more = standing.length - rows.length
  return more > 0 ? [...rows, ['problem', `... and ${more} more: \`outboxd status --json\``]] : rows
}

function instanceRows(report: StatusReport): Row[] {
  const { instances, nowMs } = report
  if (instances.length === 0) return [['instances', whyNoInstance(report)]]
  return instances.map(({ id, host, version, startedMs }) => [
    'instance',
    `${id.slice(0, 8)} on ${host}, version ${version}, since ${showMoment(startedMs, nowMs)}`,
  ])
}

export function whyNoInstance({ readOnly, daemonConnected, lastSilentMs, nowMs }: StatusReport): string {
  if (readOnly.some(({ of }) => of === 'ledger')) return 'unknown while the ledger is read-only'
  const which = daemonConnected ? 'one connected, without a heartbeat' : 'none running'
  const heard = lastSilentMs === null ? '' : `; last heartbeat ${showMoment(lastSilentMs, nowMs)}`
  return `${which}${heard}`
}
