import { states } from '../../model.ts'
import type { StatusReport } from '../../operations/diagnose.ts'
import { renderStatus, renderStatusLine } from '../../operations/renderStatus.ts'
import { performanceJson } from '../../operations/serviceTargets.ts'
import { escapeControl } from '../../plainText.ts'
import type { LockingSession } from '../../postgres/locks.ts'
import { isoTime, isoTimeOrNull, showDuration, showTime } from '../../time.ts'

export interface StatusView {
  show(report: StatusReport): void
  failed(message: string, nowMs: number): void
}

export type Screen = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number }

export function createStatusView(screen: Screen, options: { json: boolean; everyMs: number }): StatusView {
  if (options.json) return writingJson(screen)
  return screen.isTTY ? redrawing(screen, options.everyMs) : writingLines(screen)
}

const unreadable = (message: string) => `The ledger cannot be read, and will be read again: ${message}`

function writingJson(screen: Screen): StatusView {
  const write = (document: object) => void screen.write(`${JSON.stringify(document)}\n`)
  return {
    show: (report) => write(statusJson(report)),
    failed: (message, nowMs) =>
      write({
        at: isoTime(nowMs),
        well: false,
        headlines: [unreadable(message)],
      }),
  }
}

function writingLines(screen: Screen): StatusView {
  return {
    show: (report) => void screen.write(renderStatusLine(report)),
    failed: (message, nowMs) =>
      void screen.write(`${escapeControl(`${showTime(nowMs)} ${unreadable(message.replace(/\s+/g, ' '))}`)}\n`),
  }
}

const home = '\x1b[H'
const eraseScreen = '\x1b[2J'
const eraseToEndOfLine = '\x1b[K'
const eraseBelow = '\x1b[J'

function redrawing(screen: Screen, everyMs: number): StatusView {
  let before = eraseScreen
  const draw = (text: string, nowMs: number) => {
    const head = `outboxd status at ${showTime(nowMs)}, every ${showDuration(everyMs)}; Ctrl-C ends it`
    const shown = fitWindow([head, '', ...text.trimEnd().split('\n')], {
      columns: screen.columns || 80,
      rows: screen.rows || 24,
    })
    screen.write(`${before}${home}${shown.map((line) => `${line}${eraseToEndOfLine}\n`).join('')}${eraseBelow}`)
    before = ''
  }
  return {
    show: (report) => draw(renderStatus(report), report.nowMs),
    failed: (message, nowMs) =>
      draw(
        message
          .split('\n')
          .map((part) => escapeControl(unreadable(part)))
          .join('\n'),
        nowMs,
      ),
  }
}

/** Cuts lines to the window, and leaves one row for the cursor. */
export function fitWindow(lines: readonly string[], { columns, rows }: { columns: number; rows: number }): string[] {
  const heights = lines.map((line) => Math.max(1, Math.ceil(line.length / columns)))
  const room = rows - 1
  if (heights.reduce((sum, height) => sum + height, 0) <= room) return [...lines]
  let used = 0
  const fitting = lines.filter((_, i) => {
    used += heights[i] ?? 1
    return used <= room - 1
  })
  return [...fitting, '… more than the window shows'.slice(0, columns)]
}

/** The report for programs. Its keys must not change. */
export function statusJson(report: StatusReport) {
  const { outbox } = report
  const [first] = report.diagnoses
  return {
    at: isoTime(report.nowMs),
    well: first.isWell,
    headlines: report.diagnoses.map(({ message }) => message),
    submissions: Object.fromEntries(states.map((state) => [state, report.submissions[state]])),
    probing: report.probing,
    outboxWaiting: outbox.kind === 'read' ? outbox.outbox.waiting : null,
    outboxProblem: outbox.kind === 'unreadable' ? outbox.problem : null,
    outboxLockedBy: outbox.kind === 'locked' ? outbox.by.map(lockingSession) : [],
    oldestUnsent: isoTimeOrNull(report.oldestMs),
    oldestAccepted: isoTimeOrNull(report.oldestAcceptedMs),
    backlog: report.backlog && {
      records: report.backlog.records,
      estimatedSeconds: Math.round(report.backlog.durationMs / 1000),
      pollsPerRecord: report.backlog.pollsPerRecord,
      throughAt: isoTimeOrNull(report.throughAtMs),
    },
    heldForPerson: report.heldForPerson,
    reportsDue: { number: report.reportsDue, oldest: isoTimeOrNull(report.oldestReportDueMs) },
    service: performanceJson(report.recent),
    budget: {
      capacity: report.rateCapacity,
      available: report.rateAvailable,
      nextSlot: isoTimeOrNull(report.nextSlotMs),
    },
    pauses: report.pauses.map(({ reason, sinceMs, untilMs, detail }) => ({
      reason,
      since: isoTime(sinceMs),
      until: isoTimeOrNull(untilMs),
      detail,
    })),
    start: report.start,
    readOnly: report.readOnly,
    problems: report.standing.map(({ kind, subject, detail, sinceMs, seenMs, times, retryMs }) => ({
      kind,
      subject,
      detail,
      since: isoTime(sinceMs),
      seenAt: isoTime(seenMs),
      times,
      retryAt: isoTimeOrNull(retryMs),
    })),
    daemonConnected: report.daemonConnected,
    instances: report.instances.map(({ id, host, version, startedMs, beatMs }) => ({
      id,
      host,
      version,
      startedAt: isoTime(startedMs),
      beatAt: isoTime(beatMs),
    })),
  }
}

function lockingSession({ pid, application, state, statement, openForMs }: LockingSession) {
  return { pid, application, state, statement, openSeconds: openForMs === null ? null : Math.round(openForMs / 1000) }
}
