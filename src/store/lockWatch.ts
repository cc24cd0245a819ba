import { readSubjects, replaceProblems, subjectOf } from '../ledger/problems.ts'
import type { LockedRow, LockHolder } from '../outbox/lockedRows.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Database } from '../postgres/database.ts'

export interface LockWatchDeps {
  outbox: Pick<Outbox, 'readMarked' | 'findLocked'>
  ledger: Database
  /** Milliseconds on a clock that never runs backward. */
  elapsedMs(): number
}

/** Saving a form takes a moment, leaving it open takes longer. */
export const lockedLongMs = 60_000

/**
 * Watches rows that a claim passes over, since a session of the ERP has them locked: nothing else would ever say so.
 *
 * @returns one look. Rows that stay locked for a minute, or of which another instance has said so, are told as
 * problems; those that are no longer locked, or are captured, are so no more
 */
export function createLockWatch({ outbox, ledger, elapsedMs }: LockWatchDeps): () => Promise<void> {
  let seenSince: ReadonlyMap<string, number> = new Map()
  return async () => {
    const marked = await outbox.readMarked()
    const nowMs = elapsedMs()
    const before = seenSince
    const sinceOf = (id: string) => before.get(id) ?? nowMs
    seenSince = new Map(marked.map((id) => [id, sinceOf(id)]))
    const standing = await readSubjects(ledger, 'row_locked')
    const isLong = (id: string) => standing.has(subjectOf(id)) || nowMs - sinceOf(id) >= lockedLongMs
    const suspects = marked.filter(isLong)
    if (suspects.length === 0 && standing.size === 0) return
    const locked = suspects.length === 0 ? [] : await outbox.findLocked(suspects)
    await replaceProblems(ledger, 'row_locked', locked.map(problemOf))
  }
}

const problemOf = ({ outboxId, holder }: LockedRow) => ({
  subject: outboxId,
  detail: `locked for longer than ${lockedLongMs / 1000} s ${heldBy(holder)}; we capture it when that lets go, and rows of its key behind it wait with it`,
  retryInMs: null,
})

function heldBy(holder: LockHolder | null): string {
  if (holder === null) return 'by several sessions, or one that cannot be seen'
  const { pid, application, state } = holder
  const known = [application, state].filter((part) => part !== null && part !== '')
  return `by pid ${pid}${known.length > 0 ? ` (${known.join(', ')})` : ''}`
}
