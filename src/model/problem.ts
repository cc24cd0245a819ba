/** What can be wrong and stays so until somebody, or time, mends it. */
export const problemKinds = [
  'row_skipped',
  'row_locked',
  'unknown_type',
  'report_refused',
  'report_locked',
  'mark_ineffective',
  'row_missing',
  'row_conflict',
  'foreign_outbox',
  'foreign_service',
  'foreign_ledger',
  'ledger_behind',
  'rows_passed_over',
  'unknown_status',
  'stuck_transaction',
  'mass_refusal',
  'loop_failing',
  'claim_lost',
  'settings_differ',
  'budget_starved',
  'clock_off',
  'change_capture',
  'outbox_history',
  'files_broken',
  'credentials_broken',
  'prune_behind',
  'ledger_history',
  'chain_broken',
] as const
export type ProblemKind = (typeof problemKinds)[number]

/** Something that is wrong, as it stands. Times in epoch milliseconds. */
export interface Problem {
  kind: ProblemKind
  /** What it is about: a row's id, a type, a loop; empty for the whole. */
  subject: string
  /** For the operator: what was seen. */
  detail: string
  sinceMs: number
  /** When it was last seen so. */
  seenMs: number
  times: number
  /** When it is tried again by itself; null if it is not. */
  retryMs: number | null
}

/** A problem as the one who sees it tells it. */
export interface RaisedProblem {
  kind: ProblemKind
  /** What it is about: a row's id, a type, a loop; empty for the whole. */
  subject: string
  /** For the operator: what was seen, without the client's data. */
  detail: string
  /** When it is tried again by itself, in milliseconds from now; null if it is not. */
  retryInMs: number | null
}
