import type { ReadOnlyCause } from '../ledger/operator/readServer.ts'
import type { StartPosition } from '../ledger/servedOutbox.ts'
import type { InitialBacklog } from '../outbox/backlog.ts'
import type { OutboxTableState } from '../outbox/migrateOutbox.ts'
import { type HiddenRows, hiddenRowsMax } from '../outbox/startPosition.ts'
import { pluralize, truncate } from '../plainText.ts'
import type { LockingSession } from '../postgres/locks.ts'
import { showDuration } from '../time.ts'

const sessionsShown = 3
const applicationMaxChars = 60

/** Names sessions: `pid 4711 (order form, idle in transaction for 5 min, last statement: lock table)`. */
export function sessionsMessage(sessions: readonly LockingSession[]): string {
  const shown = sessions.slice(0, sessionsShown).map(sessionMessage)
  const more = sessions.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(' and ')
}

/** How to end the first session, as a sentence's end. @param whose such as `the ERP’s` */
export function endMessage([first]: readonly LockingSession[], whose: string): string {
  return first === undefined || first.pid === 0
    ? ''
    : `: close its form, or end it with select pg_terminate_backend(${first.pid}) in ${whose} database`
}

function sessionMessage({ pid, application, state, statement, openForMs }: LockingSession): string {
  if (pid === 0) return 'a prepared transaction (select * from pg_prepared_xacts shows it)'
  const forLong = openForMs === null ? '' : ` for ${showDuration(openForMs)}`
  const known = [
    application === null || application === '' ? null : truncate(application, applicationMaxChars),
    state === null ? null : `${state}${forLong}`,
    statement === null ? null : `${state === 'active' ? 'statement' : 'last statement'}: ${statement}`,
  ].filter((part) => part !== null)
  return known.length === 0 ? `pid ${pid}` : `pid ${pid} (${known.join(', ')})`
}

export interface ReadOnlyDatabase {
  of: 'ledger' | 'outbox'
  cause: ReadOnlyCause
}

const consequences: Record<ReadOnlyDatabase['of'], string> = {
  ledger: 'the daemons send nothing until they can write to it',
  outbox: 'the daemons take no row and report no outcome until they can write to it',
}

const remedies: Record<ReadOnlyCause, (variable: string) => string> = {
  standby: (variable) => `it is a standby: ${variable} must lead to the primary`,
  setting: (variable) =>
    `default_transaction_read_only is on for us: somebody has set it by hand, or a provider because the disk is full; look at the disk, and at \`show default_transaction_read_only\` where ${variable} leads`,
}

export function readOnlyMessage({ of, cause }: ReadOnlyDatabase): string {
  const variable = of === 'ledger' ? 'STATE_DATABASE_URL (else DATABASE_URL)' : 'DATABASE_URL'
  return `the ${of}’s database is read-only, so ${consequences[of]}; ${remedies[cause](variable)}`
}

/** Says how many rows wait before the start position; null if there are none. */
export function hiddenMessage(hidden: HiddenRows | null): string | null {
  if (hidden === null || hidden.rows === 0) return null
  const { rows, oldest } = hidden
  const since = oldest === null ? '' : `, the oldest recorded ${oldest}`
  const more = rows >= hiddenRowsMax ? ' or more' : ''
  return `${pluralize(rows, 'row')}${more} before it ${rows === 1 ? 'says that it waits' : 'say that they wait'}${since}: never sent, unless outboxd adopt --start names an earlier position.`
}

export function startMessage(start: StartPosition | null): string | null {
  if (start?.id != null) return `The daemon ignores rows with an id below ${start.id}.`
  if (start?.at != null) return `The daemon ignores rows recorded before ${start.at}.`
  return null
}

/** Says that all rows of an existing table will be sent, and how to prevent that; null if there are none. */
export function historyMessage(history: InitialBacklog | null): string | null {
  if (history === null || history.rows === 0) return null
  const { rows, isEstimate, oldest, newest } = history
  const times = oldest === null ? '' : `, created from ${oldest} to ${newest}`
  const count = `${isEstimate ? 'some ' : ''}${pluralize(rows, 'row')}`
  return `nothing was captured yet, and ${count} wait${rows === 1 ? 's' : ''}${times}: the daemon sends all of them, unless you say before where to begin (outboxd adopt --start now, id:N or since:D)`
}

export function wakeMessage({ wakes, preparedMax }: Pick<OutboxTableState, 'wakes' | 'preparedMax'>): string {
  const prepared = `max_prepared_transactions is ${preparedMax}`
  const fails = `PREPARE TRANSACTION fails after an insert that ${wakes === 'always' ? 'the trigger announces' : 'found the daemon asleep'}`
  switch (wakes) {
    case 'sleepers':
      if (preparedMax === 0) return 'inserts wake the daemon where it sleeps'
      return `inserts wake the daemon where it sleeps, but ${prepared}, and ${fails}: if the ERP uses that, outboxd migrate --outbox --no-wake`
    case 'always':
      return `the trigger that wakes the daemon is an earlier version's: each insert takes a lock of the whole cluster as it commits${preparedMax > 0 ? `, and ${fails} (${prepared})` : ''}; outboxd migrate --outbox renews it`
    case 'never':
      if (preparedMax === 0)
        return 'without the trigger that wakes the daemon, rows wait for the next sweep, a second at most (outboxd migrate --outbox creates it)'
      return `rows wait for the next sweep, a second at most: ${prepared}, and a trigger that wakes the daemon would make PREPARE TRANSACTION fail (outboxd migrate --outbox --wake creates it nevertheless)`
    default:
      return wakes satisfies never
  }
}
