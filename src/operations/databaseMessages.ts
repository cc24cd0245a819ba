import type { StartPosition } from '../ledger/binding.ts'
import type { ReadOnlyCause } from '../ledger/operator/readServer.ts'
import type { OutboxTableState } from '../outbox/migrateOutbox.ts'
import { type RowsBeforeStart, rowsBeforeStartMax } from '../outbox/startPosition.ts'
import { pluralize, truncateToOneLine } from '../plainText.ts'
import { type LockingSession, sessionEndCost } from '../postgres/locks.ts'
import { formatDuration } from '../time.ts'

const sessionsShown = 3
const applicationMaxChars = 60

/** Such as `pid 4711 (order form, idle in transaction for 5 min, last statement: lock table)`. */
export function lockingSessionNames(sessions: readonly LockingSession[]): string {
  const shown = sessions.slice(0, sessionsShown).map(sessionMessage)
  const more = sessions.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(' and ')
}

/**
 * Returns sentences that begin with a blank, or ''.
 * @param whose such as `the ERP’s`
 */
export function endLockingSessionAdviceSuffix([first]: readonly LockingSession[], whose: string): string {
  return first === undefined || first.pid === 0 ? '' : ` ${endSessionAdvice(first.pid, whose)}`
}

/** @param pid a process id, or a word for it */
export const endSessionAdvice = (pid: number | 'PID', whose: string): string =>
  `End that session in its program, or run \`select pg_terminate_backend(${pid})\` in ${whose} database. ${sessionEndCost}`

function sessionMessage({ pid, application, state, statement, openForMs }: LockingSession): string {
  if (pid === 0) return 'a prepared transaction (`select * from pg_prepared_xacts`)'
  const forLong = openForMs === null ? '' : ` for ${formatDuration(openForMs)}`
  const known = [
    application === null || application === '' ? null : truncateToOneLine(application, applicationMaxChars),
    state === null ? null : `${state}${forLong}`,
    statement === null ? null : `${state === 'active' ? 'statement' : 'last statement'}: ${statement}`,
  ].filter((part) => part !== null)
  return known.length === 0 ? `pid ${pid}` : `pid ${pid} (${known.join(', ')})`
}

const readOnlyRemedies: Record<ReadOnlyCause, string> = {
  standby: 'It is a standby: set DATABASE_URL to the primary',
  setting:
    '`default_transaction_read_only` is on: an administrator set it, or the provider did because the disk is full',
}

export function readOnlyMessage(cause: ReadOnlyCause): string {
  return `the database is read-only, so the daemons send nothing. ${readOnlyRemedies[cause]}`
}

export const standbyAwaitedMessage =
  'COMMITs in the database wait for a synchronous standby, so nothing is sent. Give its server the standby again, or take it out of `synchronous_standby_names` as docs/run/runbook.md says under claim_lost. Do not restart a daemon: only it knows what it has claimed'

export function rowsBeforeStartMessage(rowsBeforeStart: RowsBeforeStart | null): string | null {
  if (rowsBeforeStart === null || rowsBeforeStart.rows === 0) return null
  const { rows, oldest } = rowsBeforeStart
  const since = oldest === null ? '' : `, the oldest created ${oldest}`
  const more = rows >= rowsBeforeStartMax ? ' or more' : ''
  return `${pluralize(rows, 'row')}${more} before the start position ${rows === 1 ? 'waits' : 'wait'}${since}, and will never be sent.`
}

export function startPositionMessage(start: StartPosition | null): string | null {
  if (start?.id != null) return `The daemon ignores rows with an id below ${start.id}.`
  if (start?.at != null) return `The daemon ignores rows created before ${start.at}.`
  return null
}

export function wakeTriggerMessage({
  hasWakeTrigger,
  preparedMax,
}: Pick<OutboxTableState, 'hasWakeTrigger' | 'preparedMax'>): string {
  const fails = `max_prepared_transactions is ${preparedMax}, so the ERP may use PREPARE TRANSACTION, which fails after the trigger's NOTIFY`
  if (hasWakeTrigger) {
    const risk = `, but ${fails}. If the ERP uses that, run \`outboxd migrate --outbox --no-wake\``
    return `inserts wake a sleeping daemon${preparedMax === 0 ? '' : risk}`
  }
  const missing = 'no trigger wakes the daemon, so rows wait up to a second'
  return preparedMax === 0
    ? `${missing}. \`outboxd migrate --outbox\` creates it`
    : `${missing}. ${fails}. \`outboxd migrate --outbox --wake\` creates it anyway`
}
