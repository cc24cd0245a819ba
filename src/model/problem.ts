/** Problems that stay until an operator fixes them, or until they pass. */
export const problemKinds = [
  'row_skipped',
  'row_locked',
  'source_failing',
  'report_refused',
  'report_locked',
  'mark_ineffective',
  'row_missing',
  'row_conflict',
  'rows_passed_over',
  'unknown_status',
  'foreign_status',
  'stuck_transaction',
  'loop_failing',
  'claim_lost',
  'settings_differ',
  'budget_starved',
  'clock_off',
  'credentials_broken',
  'host_failing',
  'log_failing',
  'prune_behind',
] as const
export type ProblemKind = (typeof problemKinds)[number]

export interface Problem {
  kind: ProblemKind
  /** A row's id, a type or a loop; empty if the problem is general. */
  subject: string
  detail: string
  sinceMs: number
  seenMs: number
  times: number
  retryMs: number | null
}

export interface RaisedProblem {
  kind: ProblemKind
  subject: string
  /** Without data of the client, but for Postgres's message if a table refuses a mark or an outcome. */
  detail: string
  /** Null if the daemon does not try again. */
  retryInMs: number | null
}
