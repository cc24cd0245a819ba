import type { StartPosition } from '../ledger/servedOutbox.ts'
import { type HiddenRows, hiddenMax } from '../outbox/beforeStart.ts'
import { pluralize } from './table.ts'

/** What is said of rows that say that they wait, and that nobody takes; null where there is none. */
export function hiddenMessage(hidden: HiddenRows | null): string | null {
  if (hidden === null || hidden.rows === 0) return null
  const { rows, oldest } = hidden
  const since = oldest === null ? '' : `, the oldest recorded ${oldest}`
  const more = rows >= hiddenMax ? ' or more' : ''
  return `${pluralize(rows, 'row')}${more} before it ${rows === 1 ? 'says that it waits' : 'say that they wait'}${since}: never sent, unless outboxd adopt --start names an earlier position.`
}

export function startMessage(start: StartPosition | null): string | null {
  if (start?.id != null) return `The daemon ignores rows with an id below ${start.id}.`
  if (start?.at != null) return `The daemon ignores rows recorded before ${start.at}.`
  return null
}
