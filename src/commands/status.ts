import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { type Diagnosis, diagnose } from '../cli/diagnose.ts'
import { exit } from '../cli/exitCodes.ts'
import { explain } from '../cli/explainError.ts'
import { printJson } from '../cli/printJson.ts'
import type { ReadOnlyDatabase } from '../cli/readOnlyMessage.ts'
import { escapeControl, truncate } from '../cli/table.ts'
import { isoTime, showDuration, showMoment } from '../cli/time.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import type { StoreConfig } from '../config.ts'
import type { Activity } from '../ledger/operator/readActivity.ts'
import type { StartPosition } from '../ledger/servedOutbox.ts'
import type { LedgerSnapshot } from '../ledger/snapshot.ts'
import { type Problem, type State, states } from '../model.ts'
import type { HiddenRows } from '../outbox/beforeStart.ts'
import type { OutboxBacklog } from '../outbox/outbox.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { hiddenMessage, startMessage } from './adopt.ts'

export interface StatusOptions {
  json?: boolean
}

export function describeStatus(command: Command): Command {
  return command
    .description(
      'say whether all is well: states, budget, pauses, the oldest unsent record, how long the backlog takes',
    )
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
The first line says whether all is well, or what is wrong and which command explains it. The exit code is 0 either way,
and 1 where a database cannot be read.`,
    )
}

/** Prints how things stand. @returns 1 where the outbox cannot be read */
export async function status(context: CommandContext, options: StatusOptions): Promise<number> {
  return withOperatorStore(context, async (store, config) => {
    const report = await readStatusReport(store, config)
    if (options.json) printJson(context, jsonOf(report))
    else context.stdout.write(describe(report))
    if (report.outboxProblem !== null) context.stderr.write(`outboxd: ${report.outboxProblem}\n`)
    return report.outboxProblem === null ? exit.done : exit.failed
  })
}

interface StatusReport extends LedgerSnapshot, Activity {
  outbox: OutboxBacklog | null
  /** Why the outbox could not be read. */
  outboxProblem: string | null
  /** Creation of the oldest row that is not accepted yet, in the outbox or captured, epoch milliseconds. */
  oldestMs: number | null
  backlog: Backlog | null
  standing: Problem[]
  readOnly: ReadOnlyDatabase[]
  start: StartPosition
  /** Null: none can be told. */
  hidden: HiddenRows | null
  diagnoses: [Diagnosis, ...Diagnosis[]]
}

async function readStatusReport(store: OperatorStore, config: StoreConfig): Promise<StatusReport> {
  const [ledger, activity, standing, served, readOnly, hidden, outbox] = await Promise.all([
    store.readSnapshot(),
    store.readActivity(),
    store.readProblems(problemsMax),
    store.readServedOutbox(),
    store.readReadOnly(),
    store.outbox.readHidden().catch(() => null),
    store.outbox.backlog().catch((error: unknown) => explain(error).message),
  ])
  const backlog = typeof outbox === 'string' ? null : outbox
  const waiting = backlog?.waiting ?? null
  const unsent = [ledger.oldestUnsentMs, backlog?.oldestMs ?? null].filter((ms) => ms !== null)
  const oldestMs = unsent.length > 0 ? Math.min(...unsent) : null
  const capacity = ledger.rateCapacity || config.rateLimit.requests
  return {
    ...ledger,
    ...activity,
    rateCapacity: capacity,
    rateAvailable: ledger.rateCapacity > 0 ? ledger.rateAvailable : capacity,
    outbox: backlog,
    outboxProblem: typeof outbox === 'string' ? outbox : null,
    oldestMs,
    standing,
    readOnly,
    start: served.start,
    hidden,
    backlog:
      waiting === null
        ? null
        : estimateBacklog({
            toSend: waiting + ledger.submissions.queued + ledger.submissions.sending - activity.heldForPerson,
            tracked: ledger.submissions.accepted,
            pollsPerRecord: activity.pollsPerRecord,
            capacity,
            windowMs: config.rateLimit.windowMs,
            lastDueInMs: activity.lastDueMs === null ? 0 : activity.lastDueMs - activity.nowMs,
          }),
    diagnoses: diagnose({
      submissions: ledger.submissions,
      outboxWaiting: waiting,
      instances: activity.instances.length,
      readOnly,
      pauses: ledger.pauses,
      problems: standing,
      hidden,
      oldestUnsentMs: oldestMs,
      oldestAcceptedMs: ledger.oldestAcceptedMs,
      nowMs: activity.nowMs,
    }),
  }
}

/** Each is a sentence or a line; with more, somebody has to look at the table. */
const problemsMax = 200

/** How long the records that wait will take, if nothing changes. */
export interface Backlog {
  records: number
  durationMs: number
  /** Polls that a record is reckoned with. */
  pollsPerRecord: number
}

/** As long as nothing has completed: one poll a record, which is what late polling comes to. */
const pollsAssumed = 1

/**
 * Reckons every record that waits at one request and the polls that the last ones took, and every one that is being
 * tracked at those polls alone, all at the rate limit; but none is through before it is due. Pure.
 */
export function estimateBacklog(now: {
  toSend: number
  tracked: number
  pollsPerRecord: number | null
  capacity: number
  windowMs: number
  /** The last record that may go is due in so long. */
  lastDueInMs: number
}): Backlog {
  const pollsPerRecord = now.pollsPerRecord ?? pollsAssumed
  const requests = now.toSend * (1 + pollsPerRecord) + now.tracked * pollsPerRecord
  const durationMs = Math.max((requests / now.capacity) * now.windowMs, now.lastDueInMs)
  return { records: now.toSend + now.tracked, pollsPerRecord, durationMs }
}

function describe(report: StatusReport): string {
  const { submissions, rateCapacity, rateAvailable, nextSlotMs, outbox, oldestMs, backlog, nowMs } = report
  const [first, ...others] = report.diagnoses
  const rows: [string, string][] = [
    ['to send', `${outbox === null ? 'unknown' : outbox.waiting} in the outbox, ${captured(submissions)} captured`],
    ['at the service', `${submissions.accepted} being processed`],
    ['for a person', forPerson(submissions)],
    ['ended', `${submissions.completed} completed, ${submissions.discarded} discarded`],
    ['oldest unsent', oldestMs === null ? 'none' : `recorded ${showMoment(oldestMs, nowMs)}`],
    ['backlog', `${backlogMessage(backlog, report.pauses.length > 0)}${heldMessage(report.heldForPerson)}`],
    ['budget', `${rateAvailable} of ${rateCapacity} requests free${nextSlot(nextSlotMs, nowMs)}`],
    ...startRows(report),
    ...pauseRows(report),
    ...problemRows(report),
    ...instanceRows(report),
  ]
  const lines = [
    first.message,
    ...others.map(({ message }) => `Also: ${message}`),
    '',
    ...rows.map(([name, message]) => `${name.padEnd(15)} ${message}`),
  ]
  return lines.map((line) => `${escapeControl(line)}\n`).join('')
}

const captured = ({ queued, sending }: Record<State, number>) => `${queued + sending}`

function forPerson(submissions: Record<State, number>): string {
  return `${submissions.uncertain} uncertain, ${submissions.failed} failed, ${submissions.rejected} rejected`
}

function nextSlot(nextSlotMs: number | null, nowMs: number): string {
  return nextSlotMs === null ? '' : `, the next in ${showDuration(nextSlotMs - nowMs)}`
}

function backlogMessage(backlog: Backlog | null, isPaused: boolean): string {
  if (backlog === null) return 'unknown'
  if (backlog.records === 0) return 'none'
  const polls = Math.round(backlog.pollsPerRecord * 10) / 10
  const from = isPaused ? ' from when the pause ends' : ''
  return `through in about ${showDuration(backlog.durationMs)}${from}: an estimate, at the rate limit and ${polls} polls a record`
}

function heldMessage(held: number): string {
  return held === 0 ? '' : `; ${held} more ${held === 1 ? 'is' : 'are'} held behind records that wait for a person`
}

function startRows({ start, hidden }: StatusReport): [string, string][] {
  const message = startMessage(start)
  return message === null ? [] : [['start', [message, hiddenMessage(hidden) ?? []].flat().join(' ')]]
}

function pauseRows({ pauses, nowMs }: StatusReport): [string, string][] {
  if (pauses.length === 0) return [['paused', 'no']]
  return pauses.map(({ reason, sinceMs, untilMs, detail }) => {
    const until =
      untilMs === null
        ? 'until outboxd resume'
        : untilMs <= nowMs
          ? 'until a request has shown that it is over'
          : `until ${showMoment(untilMs, nowMs)}`
    return ['paused', `${reason} since ${showMoment(sinceMs, nowMs)}, ${until}: ${truncate(detail, 400)}`]
  })
}

const problemsShown = 20

function problemRows({ standing, nowMs }: StatusReport): [string, string][] {
  const rows = standing.slice(0, problemsShown).map(({ kind, subject, detail, sinceMs, retryMs }): [string, string] => {
    const retry =
      retryMs === null ? '' : `, tried again ${retryMs <= nowMs ? 'now' : `at ${showMoment(retryMs, nowMs)}`}`
    return ['problem', `${kind} ${subject} since ${showMoment(sinceMs, nowMs)}${retry}: ${truncate(detail, 400)}`]
  })
  const more = standing.length - rows.length
  return more > 0 ? [...rows, ['problem', `... and ${more} more: outboxd status --json shows them`]] : rows
}

function instanceRows({ instances, readOnly, lastSilentMs, nowMs }: StatusReport): [string, string][] {
  if (instances.length === 0 && readOnly.some(({ of }) => of === 'ledger'))
    return [['instances', 'unknown: no instance can report while the ledger is read-only']]
  if (instances.length === 0)
    return [
      [
        'instances',
        `none alive${lastSilentMs === null ? '' : `; the last was heard ${showMoment(lastSilentMs, nowMs)}`}`,
      ],
    ]
  return instances.map(({ id, host, version, startedMs }) => [
    'instance',
    `${id.slice(0, 8)} on ${host}, version ${version}, for ${showDuration(nowMs - startedMs)}`,
  ])
}

function jsonOf(report: StatusReport) {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  const [first] = report.diagnoses
  return {
    well: first.isWell,
    headlines: report.diagnoses.map(({ message }) => message),
    submissions: Object.fromEntries(states.map((state) => [state, report.submissions[state]])),
    outboxWaiting: report.outbox?.waiting ?? null,
    oldestUnsent: time(report.oldestMs),
    oldestAccepted: time(report.oldestAcceptedMs),
    backlog: report.backlog && {
      records: report.backlog.records,
      estimatedSeconds: Math.round(report.backlog.durationMs / 1000),
      pollsPerRecord: report.backlog.pollsPerRecord,
    },
    heldForPerson: report.heldForPerson,
    budget: {
      capacity: report.rateCapacity,
      available: report.rateAvailable,
      nextSlot: time(report.nextSlotMs),
    },
    pauses: report.pauses.map(({ reason, sinceMs, untilMs, detail }) => ({
      reason,
      since: isoTime(sinceMs),
      until: time(untilMs),
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
      retryAt: time(retryMs),
    })),
    instances: report.instances.map(({ id, host, version, startedMs, beatMs }) => ({
      id,
      host,
      version,
      startedAt: isoTime(startedMs),
      beatAt: isoTime(beatMs),
    })),
  }
}
