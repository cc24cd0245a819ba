/**
 * Whether a row `r` that was read (`stamp`, `"createdAt"`) is the one that the submission `s` was captured from. Stamps of
 * two kinds cannot be compared (the description has got a created_at since), nor can one that was captured before
 * stamps were kept, but for the time at which it was recorded.
 */
export const isSameRow = `case
  when split_part(s.row_stamp, ' ', 1) = split_part(r.stamp, ' ', 1) then s.row_stamp = r.stamp
  when s.row_stamp is null and r."createdAt" is not null then s.recorded_at = r."createdAt"::timestamptz
  else true end`

/** A row of the outbox that has the id of another, which the ledger knows. */
export interface RowConflict {
  outboxId: string
  /** For the operator: what was seen, without the client's data. */
  detail: string
}

/** How long a row that is in conflict is left alone, milliseconds. */
export const conflictRetryMs = 600_000

export const anotherRow = (state: string, recorded: string): string =>
  `the ledger knows another row of this id (recorded ${recorded}, now ${state}); this one is neither sent nor told its outcome`

export const twiceInBatch = 'two rows of the outbox have this id: neither is sent. Make the id unique, then correct one'

/** The ids that stand more than once. */
export function findRepeated(ids: readonly string[]): Set<string> {
  const seen = new Set<string>()
  return new Set(ids.filter((id) => seen.size === seen.add(id).size))
}
