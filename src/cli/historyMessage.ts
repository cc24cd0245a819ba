import type { OutboxHistory } from '../outbox/history.ts'
import { pluralize } from './table.ts'

/** Says that the table has a history and that all of it is sent, and what to do where that is not meant. @returns null where there is none */
export function historyMessage(history: OutboxHistory | null): string | null {
  if (history === null || history.rows === 0) return null
  const { rows, isEstimate, oldest, newest } = history
  const times = oldest === null ? '' : `, created from ${oldest} to ${newest}`
  const count = `${isEstimate ? 'some ' : ''}${pluralize(rows, 'row')}`
  return `nothing was captured yet, and ${count} wait${rows === 1 ? 's' : ''}${times}: the daemon sends all of them, unless you say before where to begin (outboxd adopt --start now, id:N or since:D)`
}
