import type { Problem } from '../model.ts'
import { escapeControl, pluralize, truncate } from './table.ts'
import { showTime } from './time.ts'

const shownMax = 20

/** Says of the rows that never became submissions why, a line each, the first twenty. Pure. */
export function skippedRowMessages(problems: readonly Problem[]): string[] {
  const skipped = problems.filter(({ kind }) => kind === 'row_skipped')
  const lines = skipped.slice(0, shownMax).map(({ subject, detail, retryMs }) => {
    const retry = retryMs === null ? '' : ` (tried again ${showTime(retryMs)})`
    return escapeControl(`outbox:${truncate(subject, 60)} is put off: ${detail}${retry}.`)
  })
  const more = skipped.length - shownMax
  return more > 0 ? [...lines, `And ${pluralize(more, 'row')} more at least: outboxd status --json names them.`] : lines
}
