/** What can be wrong and stays so until a person, or time, mends it. */
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

/** A problem as it stands. Times in epoch milliseconds. */
export interface Problem {
  kind: ProblemKind
  /** A row's id, a type, a loop; empty for the whole. */
  subject: string
  /** For the operator. */
  detail: string
  sinceMs: number
  seenMs: number
  times: number
  /** When it is tried again; null if it is not. */
  retryMs: number | null
}

/** A problem as it is raised. */
export interface RaisedProblem {
  kind: ProblemKind
  /** A row's id, a type, a loop; empty for the whole. */
  subject: string
  /** For the operator, without the client's data. */
  detail: string
  /** Null if it is not tried again. */
  retryInMs: number | null
}
