import type { Problem } from '../model/problem.ts'
import { isPauseOfBreaker, type PauseReason } from '../model/service.ts'
import { statesNeedingAttention } from '../model/submission.ts'
import type { OutboxBacklog } from '../outbox/backlog.ts'
import { capitalize, pluralize } from '../plainText.ts'
import { formatDuration, formatInstantAndDistance } from '../time.ts'
import {
  endLockingSessionAdviceSuffix,
  lockingSessionNames,
  readOnlyMessage,
  rowsBeforeStartMessage,
  standbyAwaitedMessage,
} from './databaseMessages.ts'
import { daemonsFilesAdvice } from './ledgerFiles.ts'
import { problemMessages } from './problemMessages.ts'
import { type CombinedStatus, combineStatuses, type LedgerStatus, type OutboxStatus } from './readStatus.ts'
import { serviceAlarmMessages } from './serviceLevelTargets.ts'

export interface StatusReport extends CombinedStatus {
  diagnoses: [Diagnosis, ...Diagnosis[]]
}

export function createStatusReport(ledger: LedgerStatus, outbox: OutboxStatus): StatusReport {
  const facts = combineStatuses(ledger, outbox)
  return { ...facts, diagnoses: diagnose(facts) }
}

export type Diagnosis =
  | { isWell: true; message: string }
  | { isWell: false; message: string; condition: HealthCondition }

type Condition = (status: CombinedStatus) => readonly string[]

/**
 * All is well if no condition returns a message. The most urgent condition comes first. Each needs a case in
 * test/operations/diagnose.test.ts.
 */
const healthConditionChecks = {
  'no COMMIT hangs': ({ isStandbyAwaited }) => (isStandbyAwaited ? [sentence(standbyAwaitedMessage)] : []),
  'no pause for the ledger’s history': (status) => paused(status, isForHistory),
  'the outbox can be read': (status) => some(outboxAway(status)),
  'the database can be written': ({ readOnly }) => (readOnly === null ? [] : [sentence(readOnlyMessage(readOnly))]),
  'a daemon lives': (status) => some(noDaemon(status)),
  'no other pause': (status) => paused(status, (pause) => !isForHistory(pause)),
  'the service meets its targets': ({ recent }) => serviceAlarmMessages(recent),
  'no other problem is open': ({ standing, problems, instances }) =>
    problemMessages(
      standing.filter((problem) => instances.length > 0 || !namesSession(problem)),
      problems,
    ),
  'waiting rows are counted as the daemons see them': (status) => some(countedOtherwise(status)),
  'due records are claimed': (status) => some(unclaimed(status)),
  'due polls are made': (status) => some(unpolled(status)),
  'no other client spends from the budget': (status) => some(budgetShared(status)),
  'no record needs attention': (status) => some(waitsForPerson(status)),
  'no record is late': (status) => some(late(status)),
  'outcomes are written back in time': (status) => some(untold(status)),
} satisfies Record<string, Condition>

/** True if nothing is sent until this is mended. */
export function stopsSending(diagnosis: Diagnosis): boolean {
  return !diagnosis.isWell && conditionsOfSending.has(diagnosis.condition)
}

const conditionsOfSending: ReadonlySet<HealthCondition> = new Set([
  'no COMMIT hangs',
  'no pause for the ledger’s history',
  'the outbox can be read',
  'the database can be written',
  'a daemon lives',
  'no other pause',
  'due records are claimed',
] as const)

export type HealthCondition = keyof typeof healthConditionChecks | typeof lastCondition

/** Judged last, because any other broken condition would explain why rows wait. */
const lastCondition = 'waiting rows are captured'

const some = (message: string | null): string[] => (message === null ? [] : [message])
const isForHistory = ({ reason }: CombinedStatus['pauses'][number]) => reason === 'history' || reason === 'standby'
/** True if the message tells the reader to end a session. Only a living daemon notices when that session has ended. */
const namesSession = ({ kind }: Problem) => kind === 'row_locked' || kind === 'report_locked'

export function findUnmetHealthConditions(
  status: CombinedStatus,
): { condition: HealthCondition; messages: readonly string[] }[] {
  const names = Object.keys(healthConditionChecks) as (keyof typeof healthConditionChecks)[]
  const broken = names
    .map((condition) => ({ condition, messages: healthConditionChecks[condition](status) }))
    .filter(({ messages }) => messages.length > 0)
  if (broken.length > 0) return broken
  const messages = some(notTaken(status))
  return messages.length > 0 ? [{ condition: lastCondition, messages }] : []
}

const lateMs = 3_600_000

const untakenMs = 60_000

const nothingKnown = 'Look at the daemon’s log (full disk? missing permission?), and run `outboxd check`.'

/** Null if nothing is overdue. */
function stalledFor(dueMs: number | null, sinceMs: number | null, { instances, nowMs }: CombinedStatus) {
  if (dueMs === null || sinceMs === null || instances.length === 0 || nowMs - dueMs <= untakenMs) return null
  return { due: formatDuration(nowMs - dueMs), idle: formatDuration(nowMs - sinceMs) }
}

const isExplained = ({ pauses, standing, instances }: CombinedStatus) =>
  pauses.length > 0 || standing.filter(({ kind }) => kind === 'host_failing').length >= instances.length

function unclaimed(status: CombinedStatus): string | null {
  const stalled = stalledFor(status.firstDueMs, status.unclaimedSinceMs, status)
  if (stalled === null || isExplained(status)) return null
  return `Nothing is sent: captured records have been due for up to ${stalled.due} and requests are free, but no daemon has claimed a record for ${stalled.idle}. ${nothingKnown}`
}

function unpolled(status: CombinedStatus): string | null {
  const stalled = stalledFor(status.firstPollDueMs, status.unansweredSinceMs, status)
  if (stalled === null || isExplained(status)) return null
  return `No outcome is recorded: polls have been due for up to ${stalled.due} and requests are free, but no daemon has written an answer to the ledger for ${stalled.idle}. ${nothingKnown}`
}

const untoldMs = 300_000

export function diagnose(status: CombinedStatus): [Diagnosis, ...Diagnosis[]] {
  const wrong = findUnmetHealthConditions(status).flatMap(({ condition, messages }) =>
    messages.map((message): Diagnosis => ({ isWell: false, message, condition })),
  )
  const [first, ...rest] = wrong
  return first === undefined ? [{ isWell: true, message: allIsWell(status) }] : [first, ...rest]
}

function outboxAway({ outbox }: CombinedStatus): string | null {
  switch (outbox.kind) {
    case 'read':
      return null
    case 'awaited':
      return 'The outbox has not answered yet.'
    case 'locked':
      return `The outbox’s table is locked by ${lockingSessionNames(outbox.by)}. Until that session ends, no row is captured and no outcome is written back.${endLockingSessionAdviceSuffix(outbox.by, 'the ERP’s')}`
    case 'unreadable':
      return 'The outbox cannot be read. `outboxd check` says why.'
    default:
      return outbox satisfies never
  }
}

/** Without a living daemon, the files here may be those that the next one gets. */
function countedOtherwise({ outbox, instances }: CombinedStatus): string | null {
  if (outbox.kind !== 'read' || outbox.differences === '' || instances.length === 0) return null
  return `The number of waiting rows may be wrong, because the files or the role here are not those of the daemons (${outbox.differences}). ${daemonsFilesAdvice}`
}

const sentence = (message: string) => `${capitalize(message)}.`

/** A daemon cannot write its heartbeat into a read-only database, so no heartbeat is missed there. */
function noDaemon({
  instances,
  daemonConnected,
  lastSilentMs,
  heldUpBy,
  readOnly,
  nowMs,
}: CombinedStatus): string | null {
  if (instances.length > 0 || readOnly !== null) return null
  if (!daemonConnected)
    return 'No daemon is running, so nothing is sent. Start one with `outboxd run`. If a daemon has stopped by itself, its log says why. If one runs, this is not its database: check DATABASE_URL and LEDGER_SCHEMA.'
  const since = lastSilentMs === null ? 'yet' : `for ${formatDuration(nowMs - lastSilentMs)}`
  const why =
    heldUpBy.length > 0
      ? `It waits for ${lockingSessionNames(heldUpBy)}.${endLockingSessionAdviceSuffix(heldUpBy, 'its')}`
      : 'It cannot write to the ledger (full disk, missing permission): `outboxd check` says so. Or another session locks its row: this command names that session within a few seconds. Or its process hangs: then start another daemon, which takes over within half a minute. What the first was sending becomes uncertain.'
  return `A daemon is connected, but has had no heartbeat ${since}, so nothing is sent. ${why}`
}

const explains: Record<PauseReason, string> = {
  throttled:
    'The service says that outboxd asks too often. Sending resumes by itself. `outboxd check` shows what the service answers now.',
  unavailable:
    'The service says that it is down. Sending resumes by itself. `outboxd check` shows what the service answers now.',
  unauthorized:
    'The service or a proxy refuses our sign-in or address, or redirects us. `outboxd check` shows its answer.',
  unreachable: 'The service cannot be reached, or something else answers in its place. `outboxd check` says why.',
  operator: 'An operator paused sending. `outboxd resume` ends the pause.',
  history:
    'The ledger’s database may not have all that was sent, or may lose it in a failover. `outboxd recover --dry-run` shows what to do.',
  standby:
    'COMMITs in the database wait for no synchronous standby. Give its server the standby again, or remove LEDGER_STANDBY.',
}

/** The breaker waits for a person. */
const explainsDoubts =
  'Submissions are left in doubt one after the other, although the service may answer other requests. `outboxd list --state uncertain` shows them. When the service takes submissions again, `outboxd resume --all` sends one.'

function paused({ pauses, nowMs }: CombinedStatus, of: (pause: CombinedStatus['pauses'][number]) => boolean): string[] {
  const first = pauses.find(isForHistory) ?? pauses[0]
  return pauses.filter(of).map((pause) => {
    const { reason, sinceMs, untilMs } = pause
    const what = pause === first ? 'Nothing is sent: paused' : 'Paused'
    const why = isPauseOfBreaker(reason) && untilMs === null ? explainsDoubts : explains[reason]
    return `${what} (${reason}) since ${formatInstantAndDistance(sinceMs, nowMs)}. ${why}`
  })
}

function budgetShared({ rateHeldBack, rateCapacity }: CombinedStatus): string | null {
  if (rateHeldBack === 0) return null
  return `Another client spends from the budget, so outboxd leaves ${rateHeldBack} of ${rateCapacity} requests to it. Stop that client, or lower RATE_LIMIT_REQUESTS for all daemons and restart them.`
}

const eachMax = 10

export const countNeedingAttention = ({ submissions }: Pick<CombinedStatus, 'submissions'>): number =>
  statesNeedingAttention.reduce((total, state) => total + submissions[state], 0)

function waitsForPerson(facts: CombinedStatus): string | null {
  const total = countNeedingAttention(facts)
  if (total === 0) return null
  const { submissions } = facts
  const kinds = (['uncertain', 'failed', 'rejected'] as const).filter((state) => submissions[state] > 0)
  const parts = kinds.map((state) => `${submissions[state]} ${state}`).join(', ')
  return `${pluralize(total, 'record')} ${total === 1 ? 'needs' : 'need'} attention (${parts}). ${total > eachMax ? '`outboxd list --by-cause` groups them by cause.' : '`outboxd list` shows them.'}`
}

function late(status: CombinedStatus): string | null {
  const { oldestMs, oldestAcceptedMs, nowMs } = status
  if (oldestMs !== null && nowMs - oldestMs > lateMs)
    return `The oldest record has waited for ${formatDuration(nowMs - oldestMs)}${readOutbox(status).oldestMs === oldestMs ? ', as a row of the outbox that is not captured yet. `outboxd check` says whether something prevents that.' : '. `outboxd list --state queued` shows it.'}`
  if (oldestAcceptedMs === null || nowMs - oldestAcceptedMs <= lateMs) return null
  return `The service has not said for ${formatDuration(nowMs - oldestAcceptedMs)} what became of a record. \`outboxd list --state sending,accepted\` shows it.`
}

function notTaken(status: CombinedStatus): string | null {
  const { waiting, oldestMs } = readOutbox(status)
  const stalled = stalledFor(oldestMs, status.idleSinceMs, status)
  if (stalled === null) return null
  return `${pluralize(waiting, 'row')} of the outbox ${waiting === 1 ? 'waits' : 'wait'}, the oldest for ${stalled.due}, but nothing is sent, and no problem is known. ${nothingKnown}`
}

function untold({ reportsDue, oldestReportDueMs, nowMs }: CombinedStatus): string | null {
  if (oldestReportDueMs === null || nowMs - oldestReportDueMs <= untoldMs) return null
  return `${pluralize(reportsDue, 'outcome')} ${reportsDue === 1 ? 'is' : 'are'} not written back to the outbox, the oldest for ${formatDuration(nowMs - oldestReportDueMs)}. A daemon tries again by itself. \`outboxd check\` tries one row, and says what is wrong.`
}

const readOutbox = ({ outbox }: CombinedStatus): OutboxBacklog =>
  outbox.kind === 'read' ? outbox.outbox : { waiting: 0, oldestMs: null }

function allIsWell({ outbox, submissions, probing }: CombinedStatus): string {
  const left = (outbox.kind === 'read' ? outbox.outbox.waiting : 0) + submissions.queued
  const onTheWire = submissions.sending - probing
  const tracked = submissions.accepted
  const parts = [
    left > 0 ? `${pluralize(left, 'record')} to send` : null,
    onTheWire > 0 ? `${onTheWire} on the wire` : null,
    tracked > 0 ? `${tracked} being processed by the service` : null,
    probing > 0 ? `${probing} uncertain (outboxd asks the service)` : null,
  ].filter((part) => part !== null)
  // Rows before the start position are not a problem, because an operator excluded them.
  const before = outbox.kind === 'read' ? rowsBeforeStartMessage(outbox.rowsBeforeStart) : null
  return `All is well: ${parts.length === 0 ? 'everything is sent' : parts.join(', ')}.${before === null ? '' : ` ${before}`}`
}
