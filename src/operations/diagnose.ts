import type { StoreConfig } from '../config.ts'
import type { PauseReason, Problem } from '../model.ts'
import type { OutboxBacklog } from '../outbox/backlog.ts'
import { hiddenRowsMax } from '../outbox/startPosition.ts'
import { capitalize, pluralize } from '../plainText.ts'
import { showDuration, showMoment } from '../time.ts'
import { endMessage, readOnlyMessage, sessionsMessage } from './databaseMessages.ts'
import { problemMessage } from './problemMessage.ts'
import { joinFacts, type LedgerHalf, type OutboxHalf, type StatusFacts } from './readStatus.ts'
import { targetsMissed, totalOf } from './serviceTargets.ts'

export interface StatusReport extends StatusFacts {
  diagnoses: [Diagnosis, ...Diagnosis[]]
}

export function joinHalves(ledger: LedgerHalf, outbox: OutboxHalf, config: StoreConfig): StatusReport {
  const facts = joinFacts(ledger, outbox, config)
  return { ...facts, diagnoses: diagnose(facts) }
}

/** A sentence for the person on call, and the condition that does not hold. */
export type Diagnosis = { isWell: true; message: string } | { isWell: false; message: string; condition: WellCondition }

type Condition = (status: StatusFacts) => readonly string[]

/**
 * All is well if each of these holds. The most urgent comes first. A new condition is a row here, and one in
 * test/operations/diagnose.test.ts.
 */
export const wellConditions = {
  'no pause for the ledger’s history': ({ pauses, standing, nowMs }) =>
    paused(pauses.filter(isForHistory), nowMs).map((message) =>
      standing.some(isOfHistory) ? message : `${message} outboxd recover --dry-run shows what it would do about that.`,
    ),
  'the ledger’s history is as agreed': ({ standing }) => problemMessage(standing.filter(isOfHistory)),
  'the outbox can be read': (status) => some(outboxAway(status)),
  'both databases can be written': ({ readOnly }) => readOnly.map((database) => sentence(readOnlyMessage(database))),
  'a daemon lives': (status) => some(noDaemon(status)),
  'no other pause': ({ pauses, nowMs }) =>
    paused(
      pauses.filter((pause) => !isForHistory(pause)),
      nowMs,
    ),
  'the service meets its targets': ({ recent }) => targetsMissed(totalOf(recent.lastHour)),
  'no other problem is open': ({ standing }) => problemMessage(standing.filter((problem) => !isOfHistory(problem))),
  'no record waits for a person': (status) => some(waitsForPerson(status)),
  'no record is late': (status) => some(late(status)),
  'the outbox hears outcomes in time': (status) => some(untold(status)),
} satisfies Record<string, Condition>

export type WellCondition = keyof typeof wellConditions | typeof lastCondition

/** Judged only if all others hold, because any of them would explain it. */
const lastCondition = 'waiting rows are taken'

const some = (message: string | null): string[] => (message === null ? [] : [message])
const isForHistory = ({ reason }: StatusFacts['pauses'][number]) => reason === 'history'
const isOfHistory = ({ kind }: Problem) => kind === 'ledger_history'

export function brokenConditions(status: StatusFacts): { condition: WellCondition; messages: readonly string[] }[] {
  const names = Object.keys(wellConditions) as (keyof typeof wellConditions)[]
  const broken = names
    .map((condition) => ({ condition, messages: wellConditions[condition](status) }))
    .filter(({ messages }) => messages.length > 0)
  if (broken.length > 0) return broken
  const messages = some(notTaken(status))
  return messages.length > 0 ? [{ condition: lastCondition, messages }] : []
}

/** The same as in the alerts OutboxdBehind and OutboxdTransactionsSlow. */
const lateMs = 3_600_000

const untakenMs = 60_000

/** A locked row is told a little later. */
const untoldMs = 300_000

/** What is wrong, the most urgent first, each with a command; or one sentence that all is well. */
export function diagnose(status: StatusFacts): [Diagnosis, ...Diagnosis[]] {
  const wrong = brokenConditions(status).flatMap(({ condition, messages }) =>
    messages.map((message): Diagnosis => ({ isWell: false, message, condition })),
  )
  const [first, ...rest] = wrong
  return first === undefined ? [{ isWell: true, message: allIsWell(status) }] : [first, ...rest]
}

function outboxAway({ outbox }: StatusFacts): string | null {
  switch (outbox.kind) {
    case 'read':
      return null
    case 'awaited':
      return 'The outbox has not answered yet: what it says follows below.'
    case 'locked':
      return `The outbox’s table is locked by ${sessionsMessage(outbox.by)}, so no row of it is taken and no outcome told until that lets go${endMessage(outbox.by, 'the ERP’s')}.`
    case 'unreadable':
      return 'The outbox cannot be read: outboxd check says why.'
    default:
      return outbox satisfies never
  }
}

const sentence = (message: string) => `${capitalize(message)}.`

/** A daemon has no heartbeat if the ledger cannot be written. */
function noDaemon({ instances, daemonConnected, lastSilentMs, heldUpBy, readOnly, nowMs }: StatusFacts): string | null {
  if (instances.length > 0 || readOnly.some(({ of }) => of === 'ledger')) return null
  if (!daemonConnected) return 'No daemon is running, so nothing is sent: start it (outboxd run), or look at its log.'
  const since = lastSilentMs === null ? 'yet' : `for ${showDuration(nowMs - lastSilentMs)}`
  const why =
    heldUpBy.length > 0
      ? `in the ledger’s database it waits for ${sessionsMessage(heldUpBy)}${endMessage(heldUpBy, 'that')}`
      : 'it cannot write to the ledger (a full disk, a right that is missing), or its process stands still; its log says which, and outboxd check what the databases say'
  return `A daemon is connected and has given no sign of life ${since}, so nothing is sent: ${why}. Another daemon would be no better off.`
}

const explains: Record<PauseReason, string> = {
  throttled:
    'the service says that we ask too often. Sending goes on by itself; outboxd check says what the service answers now.',
  unavailable:
    'the service says that it is down. Sending goes on by itself; outboxd check says what the service answers now.',
  unauthorized: 'the service does not let us in: outboxd check says which request it refuses.',
  unreachable: 'we do not get through to the service, or something else answers in its place: outboxd check says why.',
  operator: 'somebody paused it: outboxd resume ends the pause.',
  history: 'the ledger’s database may not have all that was sent, or may lose it in a failover.',
}

function paused(pauses: readonly StatusFacts['pauses'][number][], nowMs: number): string[] {
  return pauses.map(
    ({ reason, sinceMs }) =>
      `Nothing is sent: paused (${reason}) since ${showMoment(sinceMs, nowMs)}; ${explains[reason]}`,
  )
}

/** Above this, a list by cause is more useful. */
const eachMax = 10

function waitsForPerson({ submissions }: StatusFacts): string | null {
  const kinds = (['uncertain', 'failed', 'rejected'] as const).filter((state) => submissions[state] > 0)
  const total = kinds.reduce((sum, state) => sum + submissions[state], 0)
  if (total === 0) return null
  const parts = kinds.map((state) => `${submissions[state]} ${state}`).join(', ')
  return `${pluralize(total, 'record')} ${total === 1 ? 'waits' : 'wait'} for a person (${parts}): ${total > eachMax ? 'outboxd list --by-cause shows what they have in common.' : 'outboxd list shows them.'}`
}

function late({ oldestMs, oldestAcceptedMs, probing, nowMs }: StatusFacts): string | null {
  if (oldestMs !== null && nowMs - oldestMs > lateMs)
    return `The oldest record has waited for ${showDuration(nowMs - oldestMs)}: outboxd list --state queued shows the first.`
  if (oldestAcceptedMs !== null && nowMs - oldestAcceptedMs > lateMs && probing > 0)
    return `The service has not said what became of a record for ${showDuration(nowMs - oldestAcceptedMs)}: outboxd list --state sending,accepted shows it.`
  if (oldestAcceptedMs !== null && nowMs - oldestAcceptedMs > lateMs)
    return `The service has worked on a record for ${showDuration(nowMs - oldestAcceptedMs)}: outboxd list --state accepted shows it.`
  return null
}

/** Finds what no daemon could write down, as when the ledger's disk is full. */
function notTaken(status: StatusFacts): string | null {
  const { isBudgetUnused, instances, nowMs } = status
  const { waiting, oldestMs } = readOutbox(status)
  const [first] = instances
  if (!isBudgetUnused || oldestMs === null || first === undefined) return null
  if (nowMs - Math.max(oldestMs, first.startedMs) <= untakenMs) return null
  return `${pluralize(waiting, 'row')} of the outbox ${waiting === 1 ? 'waits' : 'wait'}, the oldest for ${showDuration(nowMs - oldestMs)}, and nothing is sent though nothing is known to keep it back: the daemon’s log says why (a disk that is full, a right that is missing), and outboxd check what the databases say.`
}

function untold({ reportsDue, oldestReportDueMs, nowMs }: StatusFacts): string | null {
  if (oldestReportDueMs === null || nowMs - oldestReportDueMs <= untoldMs) return null
  return `${pluralize(reportsDue, 'outcome')} ${reportsDue === 1 ? 'is' : 'are'} not yet told to the outbox, the oldest for ${showDuration(nowMs - oldestReportDueMs)}: a daemon tells it as soon as it can write to the table; outboxd check tries one row.`
}

const readOutbox = ({ outbox }: StatusFacts): OutboxBacklog =>
  outbox.kind === 'read' ? outbox.outbox : { waiting: 0, oldestMs: null }

/** An operator chose the start position, so rows before it are no fault, but their number is told. */
function leftBehind({ outbox }: StatusFacts): string | null {
  const hidden = outbox.kind === 'read' ? outbox.hidden : null
  if (hidden === null || hidden.rows === 0) return null
  const [row, is] = hidden.rows === 1 ? ['row', 'is'] : ['rows', 'are']
  const more = hidden.rows >= hiddenRowsMax ? ' or more' : ''
  return `${hidden.rows}${more} waiting ${row} before the start position ${is} left, as was decided (outboxd adopt --start)`
}

function allIsWell(status: StatusFacts): string {
  const { submissions, probing } = status
  const left = readOutbox(status).waiting + submissions.queued + submissions.sending - probing
  const tracked = submissions.accepted
  const behind = leftBehind(status)
  if (left + tracked + probing === 0)
    return behind === null
      ? 'All is well: everything is sent and nothing waits.'
      : `All is well: everything from the start position on is sent; ${behind}.`
  const parts = [
    left > 0 ? `${pluralize(left, 'record')} to send` : null,
    tracked > 0 ? `${tracked} being processed by the service` : null,
    probing > 0 ? `${probing} sent that the service is asked about` : null,
  ].filter((part) => part !== null)
  return `All is well: ${parts.join(', ')}${behind === null ? '' : `; ${behind}`}.`
}
