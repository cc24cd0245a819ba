import { type ProblemKind, problemKinds } from '../model/problem.ts'
import { contractBreaches, type PauseReason, pauseReasons, requestOutcomes } from '../model/service.ts'
import { endStates, type State, states } from '../model/submission.ts'
import { endpoints } from '../resources.ts'

/** Codes that `service_errors_total` counts separately (docs/reference/interface.md, 7.2). */
export const countedErrorCodes = ['E001', 'E002', 'E003', 'other'] as const

export const loopNames = [
  'capture',
  'dispatch',
  'report',
  'heartbeat',
  'orphans',
  'upkeep',
  'observe',
  'schedule',
  'survey',
  'prune',
  'history',
] as const
export type LoopName = (typeof loopNames)[number]

/**
 * The values that the loop `observe` last read, so that a scrape never waits for a database. Times are epoch
 * milliseconds of the ledger's clock, or null.
 */
export interface MetricsSnapshot {
  nowMs: number
  submissions: Record<State, number>
  changedAfterSent: number
  outboxWaiting: number
  /** Creation of the oldest row to be sent, also during a pause or a backoff. */
  oldestUnsentMs: number | null
  oldestAcceptedMs: number | null
  oldestForPersonMs: number | null
  pauses: readonly PauseReason[]
  problems: Partial<Record<ProblemKind, number>>
  reportsDue: number
  oldestReportDueMs: number | null
  rateCapacity: number
  rateAvailable: number
  rateHeldBack: number
}

/** Values of each label. Any other value counts as `other`. */
export type LabelValues = Readonly<Record<string, readonly string[]>>

interface RowBase {
  name: string
  help: string
  labels?: LabelValues
}

/** If the name ends in `_seconds`, callers give milliseconds. */
export type MetricRow = RowBase &
  (
    | { kind: 'counter' }
    | { kind: 'histogram'; buckets: readonly number[] }
    /** `own gauge`: each instance has its own value. `gauge`: all instances read the same value from the databases. */
    | { kind: 'own gauge' | 'gauge' }
    /** Set by each snapshot: one value, or one value per label value. The row has at most one label. */
    | { kind: 'shown'; of: (snapshot: MetricsSnapshot) => number | null | Readonly<Partial<Record<string, number>>> }
    /**
     * Epoch milliseconds, set by each snapshot. A second metric `…_age_seconds` has the seconds since then, and grows
     * between snapshots.
     */
    | { kind: 'moment'; of: (snapshot: MetricsSnapshot) => number | null }
    /** Seconds since `restart` was last called, or since the process started. */
    | { kind: 'stopwatch' }
  )

/**
 * Every metric. Each combination of label values starts at 0, so that `rate()` sees the first event.
 *
 * A new metric needs a row here, and a call in the part that counts it (`metrics.replays.add(1)`).
 */
export const metricRows = {
  requests: {
    kind: 'counter',
    name: 'outboxd_requests_total',
    help: 'Requests to the service.',
    labels: { endpoint: endpoints, outcome: requestOutcomes },
  },
  requestDuration: {
    kind: 'histogram',
    name: 'outboxd_request_duration_seconds',
    help: 'Seconds from sending a request until its whole answer was read, or until the timeout.',
    labels: { endpoint: endpoints, outcome: requestOutcomes },
    // Has an edge at 2, because the service promises answers below 2 s (docs/reference/interface.md, 8).
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 1.5, 1.8, 2, 2.2, 2.5, 3, 5, 10, 30, 60],
  },
  serviceErrors: {
    kind: 'counter',
    name: 'outboxd_service_errors_total',
    help: 'Error codes that the service sent, in an answer or as the end of a transaction.',
    labels: { code: countedErrorCodes },
  },
  breaches: {
    kind: 'counter',
    name: 'outboxd_contract_breaches_total',
    help: 'Answers that the interface does not allow.',
    labels: { kind: contractBreaches },
  },
  paused: {
    kind: 'shown',
    name: 'outboxd_paused',
    help: '1 while all instances stop sending for this reason, else 0.',
    labels: { reason: pauseReasons },
    of: ({ pauses }) => Object.fromEntries(pauses.map((reason) => [reason, 1])),
  },
  rateCapacity: {
    kind: 'shown',
    name: 'outboxd_rate_limit_capacity',
    help: 'Requests that the budget allows per window, for all instances together.',
    of: (snapshot) => snapshot.rateCapacity,
  },
  rateAvailable: {
    kind: 'shown',
    name: 'outboxd_rate_limit_available',
    help: 'Requests that could be made now, for all instances together.',
    of: (snapshot) => snapshot.rateAvailable,
  },
  rateHeldBack: {
    kind: 'shown',
    name: 'outboxd_rate_limit_held_back',
    help: 'Requests of the budget that stay unused because another client spends from the same limit.',
    of: (snapshot) => snapshot.rateHeldBack,
  },
  requestWait: {
    kind: 'histogram',
    name: 'outboxd_rate_limit_wait_seconds',
    help: 'Seconds that a queued record waited until the budget had a request for it.',
    buckets: [0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600, 14400, 86400],
  },
  tokenExpiry: {
    kind: 'own gauge',
    name: 'outboxd_token_expiry_timestamp_seconds',
    help: 'Unix time at which the access token expires; 0 before the first token.',
  },
  submissions: {
    kind: 'shown',
    name: 'outboxd_submissions',
    help: 'Submissions in the ledger.',
    labels: { state: states },
    of: (snapshot) => snapshot.submissions,
  },
  changedAfterSent: {
    kind: 'shown',
    name: 'outboxd_changed_after_sent',
    help: 'Documents that changed after they were sent: the change was not sent, and waits for a person.',
    of: (snapshot) => snapshot.changedAfterSent,
  },
  finished: {
    kind: 'counter',
    name: 'outboxd_submissions_finished_total',
    help: 'Submissions that ended.',
    labels: { outcome: endStates },
  },
  finishedByType: {
    kind: 'counter',
    name: 'outboxd_submissions_finished_by_type_total',
    help: 'Submissions that ended. A type without a mapping file counts as `other`.',
    labels: { type: ['other'], outcome: endStates },
  },
  submissionDuration: {
    kind: 'histogram',
    name: 'outboxd_submission_duration_seconds',
    help: 'Seconds from the creation of the outbox row until its submission ended.',
    labels: { outcome: endStates },
    buckets: [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800],
  },
  outboxWaiting: {
    kind: 'shown',
    name: 'outboxd_outbox_waiting',
    help: 'Outbox rows that are not captured yet. Counted every 10 s; above 40,000 rows less often, at a million every 250 s.',
    of: (snapshot) => snapshot.outboxWaiting,
  },
  oldestUnsent: {
    kind: 'moment',
    name: 'outboxd_oldest_unsent_timestamp_seconds',
    help: 'Unix time of the creation of the oldest row that waits to be sent (or sent again); 0 for none.',
    of: (snapshot) => snapshot.oldestUnsentMs,
  },
  oldestAccepted: {
    kind: 'moment',
    name: 'outboxd_oldest_accepted_timestamp_seconds',
    help: 'Unix time at which the oldest open transaction was accepted (if that is unknown: sent); 0 for none.',
    of: (snapshot) => snapshot.oldestAcceptedMs,
  },
  oldestForPerson: {
    kind: 'moment',
    name: 'outboxd_oldest_for_person_timestamp_seconds',
    help: 'Unix time of the end of the oldest failed or rejected record that needs attention; 0 for none.',
    of: (snapshot) => snapshot.oldestForPersonMs,
  },
  reportsDue: {
    kind: 'shown',
    name: 'outboxd_reports_due',
    help: 'Outcomes that are not written back to the outbox yet.',
    of: (snapshot) => snapshot.reportsDue,
  },
  oldestReportDue: {
    kind: 'moment',
    name: 'outboxd_oldest_report_due_timestamp_seconds',
    help: 'Unix time of the oldest outcome that is not written back yet; 0 for none.',
    of: (snapshot) => snapshot.oldestReportDueMs,
  },
  pollsPerTransaction: {
    kind: 'histogram',
    name: 'outboxd_polls_per_transaction',
    help: 'Polls that one transaction took from acceptance to its end.',
    buckets: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100],
  },
  replays: {
    kind: 'counter',
    name: 'outboxd_replays_total',
    help: 'Submissions that an operator replayed.',
  },
  loopLastSuccess: {
    kind: 'own gauge',
    name: 'outboxd_loop_last_success_timestamp_seconds',
    help: 'Unix time at which a loop of this process last succeeded; 0 for never.',
    labels: { loop: loopNames },
  },
  loopAge: {
    kind: 'stopwatch',
    name: 'outboxd_loop_last_success_age_seconds',
    help: 'Seconds since a loop of this process last succeeded, or since the process started.',
    labels: { loop: loopNames },
  },
  pruned: {
    kind: 'counter',
    name: 'outboxd_pruned_total',
    help: 'What this process deleted from the ledger: submissions, contents (payload, body, result).',
    labels: { what: ['submission', 'contents'] },
  },
  pruneOverdue: {
    kind: 'gauge',
    name: 'outboxd_prune_overdue_seconds',
    help: 'Seconds since the oldest submission became due to be deleted or emptied; 0 for none.',
  },
  problems: {
    kind: 'shown',
    name: 'outboxd_problems',
    help: 'Problems that `outboxd status` describes. A problem stays until it is fixed or has passed.',
    labels: { kind: problemKinds },
    of: (snapshot) => snapshot.problems,
  },
  logWriteFailures: {
    kind: 'counter',
    name: 'outboxd_log_write_failures_total',
    help: 'Failed attempts to write the log, as with a full disk. Its lines are lost, and the next written line counts them.',
  },
  spansDropped: {
    kind: 'counter',
    name: 'outboxd_trace_spans_dropped_total',
    help: 'Spans that the trace collector did not get, because it was away or slow, or refused them.',
  },
  databaseUp: {
    kind: 'own gauge',
    name: 'outboxd_database_up',
    help: '1 while the database answers this process, else 0.',
  },
  certificateExpiry: {
    kind: 'own gauge',
    name: 'outboxd_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which a certificate expires: the client’s, the first to expire in SERVICE_CA_FILE, the first to expire of those that the service showed; 0 for none.',
    labels: { certificate: ['client', 'ca', 'service'] },
  },
} as const satisfies Record<string, MetricRow>

export const deriveAgeMetric = ({ name, help }: MetricRow) => ({
  name: name.replace('_timestamp_', '_age_'),
  help: help.replace('Unix time at which', 'Seconds since').replace('Unix time of', 'Seconds since'),
})
