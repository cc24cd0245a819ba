import type { LockingSession } from '../postgres/lockingSessions.ts'
import { truncate } from './table.ts'
import { showDuration } from './time.ts'

const sessionsShown = 3
const applicationMaxChars = 60

/** Who holds a lock: `pid 4711 (order form, idle in transaction for 5 min, last statement: lock table)`. */
export function sessionsMessage(sessions: readonly LockingSession[]): string {
  const shown = sessions.slice(0, sessionsShown).map(sessionMessage)
  const more = sessions.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(' and ')
}

/** How to end the first of them, as the end of a sentence. @param whose of which database, such as `the ERP’s` */
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
