import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import { states } from '../model/submission.ts'
import type { Databases } from '../operations/databases.ts'
import { createStatusReport, type StatusReport } from '../operations/diagnose.ts'
import { explainError } from '../operations/explainError.ts'
import { readLedgerStatus, readOutboxStatus } from '../operations/readStatus.ts'
import { renderStatus, renderStatusLine } from '../operations/renderStatus.ts'
import { servicePerformanceJson } from '../operations/serviceLevelTargets.ts'
import { escapeControl, escapeControlInLines, terminalOf } from '../plainText.ts'
import type { LockingSession } from '../postgres/locks.ts'
import { formatDuration, formatInstant, formatIsoInstant, formatIsoInstantOrNull, parseDurationMs } from '../time.ts'
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'show whether all is well: states, budget, pauses, the oldest unsent record, the backlog',
  options: [
    ['--json', 'print JSON; with --watch one document a line'],
    ['--watch', 'repeat until Ctrl-C; redraws a terminal, otherwise appends a line'],
    ['--every <duration>', 'refresh interval for --watch (default: 2s)'],
    ['--exit-code', 'exit with 1 unless all is well, for cron'],
  ],
  help: `The first line says whether all is well, or what is wrong and which command to run. The exit code is 0, or 1
if a database cannot be read, or with --exit-code also if not all is well.

Examples:
  outboxd status --watch                       # on a terminal
  outboxd status --watch --every 1m >> log     # a line a minute
  outboxd status --json --watch | jq .backlog`,
  async action(context, options): Promise<number> {
    const everyMs = options.every === undefined ? usualEveryMs : parseDurationMs(options.every)
    if (!everyMs) return printUsageErrors(context, [`--every ${options.every}: give a duration such as 2s or 1m`])
    if (options.every !== undefined && !options.watch)
      return printUsageErrors(context, ['--every needs --watch, such as: outboxd status --watch --every 1m'])
    if (options.watch && options.exitCode)
      return printUsageErrors(context, ['--watch shows the status until Ctrl-C, so it takes no --exit-code'])
    const { json = false } = options
    return withDatabases(context, async (databases) => {
      if (options.watch) return watch(context, databases, { everyMs, json })
      const report = await readReport(databases)
      if (json) printJson(context, statusJson(report))
      else context.stdout.write(renderStatus(report, terminalOf(context.stdout)))
      const { outbox } = report
      if (outbox.kind === 'unreadable') context.stderr.write(`outboxd: ${escapeControlInLines(outbox.problem)}\n`)
      const hasFailed = outbox.kind !== 'read' || (options.exitCode === true && !report.diagnoses[0].isWell)
      return hasFailed ? exitCodes.failed : exitCodes.done
    })
  },
})

const usualEveryMs = 2_000

async function readReport(databases: Databases): Promise<StatusReport> {
  const outbox = readOutboxStatus(databases)
  return createStatusReport(await readLedgerStatus(databases), await outbox)
}

const clearScreen = '\x1b[2J\x1b[H'

/** A database that cannot be reached is tried again. */
async function watch(
  { signal, stdout }: CommandContext,
  databases: Databases,
  { everyMs, json }: { everyMs: number; json: boolean },
): Promise<number> {
  const terminal = terminalOf(stdout)
  const draw = (text: string, nowMs: number) =>
    `${clearScreen}outboxd status at ${formatInstant(nowMs)}, every ${formatDuration(everyMs)}; Ctrl-C ends it\n\n${text}`
  const show = (report: StatusReport) => {
    if (json) return `${JSON.stringify(statusJson(report))}\n`
    return terminal === null ? renderStatusLine(report) : draw(renderStatus(report, terminal), report.nowMs)
  }
  const showFailure = (error: unknown) => {
    const nowMs = systemClock.nowMs()
    const { message } = explainError(error)
    const failure = `The ledger cannot be read, and will be read again: ${message.replace(/\s+/g, ' ')}`
    if (json) return `${JSON.stringify({ at: formatIsoInstant(nowMs), well: false, headlines: [failure] })}\n`
    const text = escapeControl(failure)
    return terminal === null ? `${formatInstant(nowMs)} ${text}\n` : draw(`${terminal.style('red', text)}\n`, nowMs)
  }
  const ended = once(signal, 'abort')
  while (!signal.aborted) {
    const looked = readReport(databases).then(show, showFailure)
    await Promise.race([looked.then((text) => signal.aborted || stdout.write(text)), ended])
    await Promise.race([setTimeout(everyMs, undefined, { signal }).catch(() => {}), ended])
  }
  return exitCodes.done
}

/** The JSON keys must not change. */
function statusJson(report: StatusReport) {
  const { outbox } = report
  const [first] = report.diagnoses
  return {
    at: formatIsoInstant(report.nowMs),
    well: first.isWell,
    headlines: report.diagnoses.map(({ message }) => message),
    submissions: Object.fromEntries(states.map((state) => [state, report.submissions[state]])),
    probing: report.probing,
    outboxWaiting: outbox.kind === 'read' ? outbox.outbox.waiting : null,
    outboxProblem: outbox.kind === 'unreadable' ? outbox.problem : null,
    outboxLockedBy: outbox.kind === 'locked' ? outbox.by.map(lockingSession) : [],
    oldestUnsent: formatIsoInstantOrNull(report.oldestMs),
    oldestAccepted: formatIsoInstantOrNull(report.oldestAcceptedMs),
    backlog: report.backlog && {
      records: report.backlog.records,
      estimatedSeconds: Math.round(report.backlog.durationMs / 1000),
      pollsPerRecord: report.backlog.pollsPerRecord,
      throughAt: formatIsoInstantOrNull(report.throughAtMs),
    },
    heldForPerson: report.heldForPerson,
    reportsDue: { number: report.reportsDue, oldest: formatIsoInstantOrNull(report.oldestReportDueMs) },
    service: servicePerformanceJson(report.recent),
    budget: {
      capacity: report.rateCapacity,
      available: report.rateAvailable,
      heldBack: report.rateHeldBack,
      nextFree: formatIsoInstantOrNull(report.nextFreeMs),
    },
    pauses: report.pauses.map(({ reason, sinceMs, untilMs, detail }) => ({
      reason,
      since: formatIsoInstant(sinceMs),
      until: formatIsoInstantOrNull(untilMs),
      detail,
    })),
    start: report.start,
    readOnly: report.readOnly,
    problems: report.standing.map(({ kind, subject, detail, sinceMs, seenMs, times, retryMs }) => ({
      kind,
      subject,
      detail,
      since: formatIsoInstant(sinceMs),
      seenAt: formatIsoInstant(seenMs),
      times,
      retryAt: formatIsoInstantOrNull(retryMs),
    })),
    daemonConnected: report.daemonConnected,
    instances: report.instances.map(({ id, host, version, startedMs, beatMs }) => ({
      id,
      host,
      version,
      startedAt: formatIsoInstant(startedMs),
      beatAt: formatIsoInstant(beatMs),
    })),
  }
}

function lockingSession({ pid, application, state, statement, openForMs }: LockingSession) {
  return { pid, application, state, statement, openSeconds: openForMs === null ? null : Math.round(openForMs / 1000) }
}
