import { states } from '../model.ts'
import type { LockingSession } from '../postgres/lockingSessions.ts'
import type { StatusReport } from './readStatus.ts'
import { performanceJson } from './serviceTargets.ts'
import { isoTime, isoTimeOrNull } from './time.ts'

/** The report for programs; the keys are promises. */
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
