import type { PauseReason, Problem, State } from '../model.ts'
import { type HiddenRows, hiddenMax } from '../outbox/beforeStart.ts'
import { problemMessage } from './problemMessage.ts'
import { type ReadOnlyDatabase, readOnlyMessage } from './readOnlyMessage.ts'
import { pluralize } from './table.ts'
import { showDuration } from './time.ts'

/** What the diagnosis is made from. */
export interface SystemStatus {
  submissions: Record<State, number>
  /** Rows that wait in the outbox; null where it cannot be read. */
  outboxWaiting: number | null
  instances: number
  /** Databases that cannot be written. */
  readOnly: readonly ReadOnlyDatabase[]
  pauses: { reason: PauseReason; sinceMs: number; detail: string }[]
  /** What stands, the oldest first. */
  problems: readonly Problem[]
  /** Rows that say that they wait before the start position, as far as they can be told. */
  hidden: HiddenRows | null
  oldestUnsentMs: number | null
  oldestAcceptedMs: number | null
  nowMs: number
}

/** A sentence for the person on call. */
export interface Diagnosis {
  isWell: boolean
  message: string
}

/** The alerts OutboxdBehind and OutboxdTransactionsSlow go by the same. */
const lateMs = 3_600_000

/**
 * What is wrong, the most urgent first, each with the command that explains or helps; or one sentence that all is well.
 * Pure.
 */
export function diagnose(status: SystemStatus): [Diagnosis, ...Diagnosis[]] {
  const wrong = [
    outboxAway(status),
    ...status.readOnly.map((database) => sentence(readOnlyMessage(database))),
    noDaemon(status),
    ...paused(status),
    ...problemMessage(status.problems),
    waitsForPerson(status),
    late(status),
  ]
    .filter((message) => message !== null)
    .map((message) => ({ isWell: false, message }))
  const [first, ...others] = wrong
  return first === undefined ? [{ isWell: true, message: allIsWell(status) }] : [first, ...others]
}

function outboxAway({ outboxWaiting }: SystemStatus): string | null {
  return outboxWaiting === null ? 'The outbox cannot be read: outboxd check says why.' : null
}

const sentence = (message: string) => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`

/** A daemon cannot give a sign of life where the ledger cannot be written. */
function noDaemon({ instances, readOnly }: SystemStatus): string | null {
  return instances === 0 && !readOnly.some(({ of }) => of === 'ledger')
    ? 'No daemon is running, so nothing is sent: start it (outboxd run), or look at its log.'
    : null
}

const explains: Record<PauseReason, string> = {
  throttled:
    'the service says that we ask too often. Sending goes on by itself; outboxd check says what the service answers now.',
  unavailable:
    'the service says that it is down. Sending goes on by itself; outboxd check says what the service answers now.',
  unauthorized: 'the service does not let us in: outboxd check says which request it refuses.',
  unreachable: 'we cannot reach the service: outboxd check says why.',
  operator: 'somebody paused it: outboxd resume ends the pause.',
}

function paused({ pauses, nowMs }: SystemStatus): string[] {
  return pauses.map(
    ({ reason, sinceMs }) =>
      `Nothing is sent: paused (${reason}) for ${showDuration(nowMs - sinceMs)}; ${explains[reason]}`,
  )
}

function waitsForPerson({ submissions }: SystemStatus): string | null {
  const kinds = (['uncertain', 'failed', 'rejected'] as const).filter((state) => submissions[state] > 0)
  const total = kinds.reduce((sum, state) => sum + submissions[state], 0)
  if (total === 0) return null
  const parts = kinds.map((state) => `${submissions[state]} ${state}`).join(', ')
  return `${pluralize(total, 'record')} ${total === 1 ? 'waits' : 'wait'} for a person (${parts}): outboxd list shows them.`
}

function late({ oldestUnsentMs, oldestAcceptedMs, nowMs }: SystemStatus): string | null {
  if (oldestUnsentMs !== null && nowMs - oldestUnsentMs > lateMs)
    return `The oldest record has waited for ${showDuration(nowMs - oldestUnsentMs)}: outboxd list --state queued shows the first.`
  if (oldestAcceptedMs !== null && nowMs - oldestAcceptedMs > lateMs)
    return `The service has worked on a record for ${showDuration(nowMs - oldestAcceptedMs)}: outboxd list --state accepted shows it.`
  return null
}

/** Where to begin was an operator's decision, so that nothing is wrong with rows before; and yet nobody will ever send them. */
function leftBehind({ hidden }: SystemStatus): string | null {
  if (hidden === null || hidden.rows === 0) return null
  const [row, is] = hidden.rows === 1 ? ['row', 'is'] : ['rows', 'are']
  const more = hidden.rows >= hiddenMax ? ' or more' : ''
  return `${hidden.rows}${more} waiting ${row} before the start position ${is} left, as was decided (outboxd adopt --start)`
}

function allIsWell(status: SystemStatus): string {
  const { submissions, outboxWaiting } = status
  const left = (outboxWaiting ?? 0) + submissions.queued + submissions.sending
  const tracked = submissions.accepted
  const behind = leftBehind(status)
  if (left + tracked === 0)
    return behind === null
      ? 'All is well: everything is sent and nothing waits.'
      : `All is well: everything from the start position on is sent; ${behind}.`
  const parts = [
    left > 0 ? `${pluralize(left, 'record')} to send` : null,
    tracked > 0 ? `${tracked} being processed by the service` : null,
  ].filter((part) => part !== null)
  return `All is well: ${parts.join(', ')}${behind === null ? '' : `; ${behind}`}.`
}
