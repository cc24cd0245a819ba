import { Counter, collectDefaultMetrics, Gauge, Histogram, type Registry } from 'prom-client'
import { breaches, outcomes, pauseReasons, problemKinds, states } from '../model.ts'
import { endpoints } from '../resources.ts'

/** The error codes that `service_errors_total` tells apart (docs/interface.md, 7.2); any other counts as `other`. */
export const countedCodes = ['E001', 'E002', 'E003', 'other'] as const

/** How a submission can end, by the names that the metrics use. */
export const finishes = ['completed', 'failed', 'rejected', 'uncertain', 'discarded'] as const

/** The daemon's loops, each with the time of its last success. */
export const loops = [
  'capture',
  'dispatch',
  'report',
  'heartbeat',
  'orphans',
  'touch',
  'reconcile',
  'observe',
  'schedule',
  'compare',
  'prune',
  'chain',
  'history',
] as const

/** What is let go of the ledger: whole submissions, the contents of others, and ids that need not be known any more. */
export const prunedKinds = ['submission', 'contents', 'id'] as const

/** The databases whose state is shown, by what is in them. */
export const databases = ['outbox', 'ledger'] as const

/** The certificates whose end is shown: SERVICE_CERT_FILE, SERVICE_CA_FILE, and the one that the service itself shows. */
export const certificates = ['client', 'ca', 'service'] as const

/** Of a record type that no mapping file knows. */
export const otherType = 'other'

export type Instruments = ReturnType<typeof createInstruments>

/**
 * Every metric with its unit and every combination of its label values at 0, so that the
 * first event of its kind is an increase that `rate()` can see.
 */
export function createInstruments(registry: Registry) {
  const instruments = {
    ...trafficInstruments(registry),
    ...budgetInstruments(registry),
    ...submissionInstruments(registry),
    ...houseInstruments(registry),
    ...surroundingInstruments(registry),
  }
  addDefaults(registry)
  return instruments
}

function trafficInstruments(registry: Registry) {
  const registers = [registry]
  const requests = new Counter({
    name: 'outboxd_requests_total',
    help: 'Requests to the service, by endpoint and how they ended.',
    labelNames: ['endpoint', 'outcome'],
    registers,
  })
  const requestSeconds = new Histogram({
    name: 'outboxd_request_duration_seconds',
    help: 'Seconds from sending a request until its whole answer was read, or until we gave up.',
    labelNames: ['endpoint', 'outcome'],
    // The service promises answers below 2 s (docs/interface.md, 8): an edge at exactly 2, and company on both sides of it.
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 1.5, 1.8, 2, 2.2, 2.5, 3, 5, 10, 30, 60],
    registers,
  })
  for (const endpoint of endpoints)
    for (const outcome of outcomes) {
      requests.inc({ endpoint, outcome }, 0)
      requestSeconds.zero({ endpoint, outcome })
    }
  const serviceErrors = new Counter({
    name: 'outboxd_service_errors_total',
    help: 'Error codes that the service sent, in an answer or as the end of a transaction.',
    labelNames: ['code'],
    registers,
  })
  for (const code of countedCodes) serviceErrors.inc({ code }, 0)
  const contractBreaches = new Counter({
    name: 'outboxd_contract_breaches_total',
    help: 'Answers that the interface does not allow, by what was wrong with them.',
    labelNames: ['kind'],
    registers,
  })
  for (const kind of breaches) contractBreaches.inc({ kind }, 0)
  return { requests, requestSeconds, serviceErrors, contractBreaches }
}

function budgetInstruments(registry: Registry) {
  const registers = [registry]
  const paused = new Gauge({
    name: 'outboxd_paused',
    help: '1 while nobody sends for this reason, else 0.',
    labelNames: ['reason'],
    registers,
  })
  for (const reason of pauseReasons) paused.set({ reason }, 0)
  return {
    paused,
    rateCapacity: new Gauge({
      name: 'outboxd_rate_limit_capacity',
      help: 'Requests that the budget allows per window, all instances together.',
      registers,
    }),
    rateAvailable: new Gauge({
      name: 'outboxd_rate_limit_available',
      help: 'Requests that could be made at once, all instances together.',
      registers,
    }),
    rateHeldBack: new Gauge({
      name: 'outboxd_rate_limit_held_back',
      help: 'Requests of the budget that are left unused because someone else spends from it.',
      registers,
    }),
    slotWaitSeconds: new Histogram({
      name: 'outboxd_rate_limit_wait_seconds',
      help: 'Seconds that a piece of work waited for the right to make its request.',
      buckets: [0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600, 14400, 86400],
      registers,
    }),
    tokenExpiry: new Gauge({
      name: 'outboxd_token_expiry_timestamp_seconds',
      help: 'Unix time at which the access token expires; 0 before the first token.',
      registers,
    }),
  }
}

function submissionInstruments(registry: Registry) {
  const registers = [registry]
  const submissions = new Gauge({
    name: 'outboxd_submissions',
    help: 'Submissions in the ledger, by state.',
    labelNames: ['state'],
    registers,
  })
  for (const state of states) submissions.set({ state }, 0)
  const finished = new Counter({
    name: 'outboxd_submissions_finished_total',
    help: 'Submissions that came to an end, by how.',
    labelNames: ['outcome'],
    registers,
  })
  const finishedByType = new Counter({
    name: 'outboxd_submissions_finished_by_type_total',
    help: 'The same by record type, for those that a mapping file knows; any other counts as `other`.',
    labelNames: ['type', 'outcome'],
    registers,
  })
  const submissionSeconds = new Histogram({
    name: 'outboxd_submission_duration_seconds',
    help: 'Seconds from the creation of the outbox row until its submission ended.',
    labelNames: ['outcome'],
    buckets: [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800],
    registers,
  })
  for (const outcome of finishes) {
    finished.inc({ outcome }, 0)
    finishedByType.inc({ type: otherType, outcome }, 0)
    submissionSeconds.zero({ outcome })
  }
  return {
    submissions,
    finished,
    finishedByType,
    submissionSeconds,
    outboxWaiting: new Gauge({
      name: 'outboxd_outbox_waiting',
      help: 'Outbox rows that nobody has taken yet, counted every 5 s; above 20,000 less often, every 250 s at a million.',
      registers,
    }),
    oldestUnsent: new Gauge({
      name: 'outboxd_oldest_unsent_timestamp_seconds',
      help: 'Unix time of creation of the oldest row that was not yet sent, or that is to be sent again; 0 for none.',
      registers,
    }),
    oldestUnsentAge: new Gauge({
      name: 'outboxd_oldest_unsent_age_seconds',
      help: 'Seconds since the creation of that row, by the clock of the ledger; 0 for none.',
      registers,
    }),
    oldestAccepted: new Gauge({
      name: 'outboxd_oldest_accepted_timestamp_seconds',
      help: 'Unix time of acceptance of the oldest transaction that is still processing, or of sending if the service does not say whether it has the record; 0 for none.',
      registers,
    }),
    oldestAcceptedAge: new Gauge({
      name: 'outboxd_oldest_accepted_age_seconds',
      help: 'Seconds since that time, by the clock of the ledger; 0 for none.',
      registers,
    }),
    oldestForPerson: new Gauge({
      name: 'outboxd_oldest_for_person_timestamp_seconds',
      help: 'Unix time of the end of the failed or rejected record that has waited longest for a person; 0 for none.',
      registers,
    }),
    oldestForPersonAge: new Gauge({
      name: 'outboxd_oldest_for_person_age_seconds',
      help: 'Seconds since that end, by the clock of the ledger; 0 for none.',
      registers,
    }),
    reportsDue: new Gauge({
      name: 'outboxd_reports_due',
      help: 'Outcomes that the rows of the outbox have yet to be told.',
      registers,
    }),
    oldestReportDue: new Gauge({
      name: 'outboxd_oldest_report_due_timestamp_seconds',
      help: 'Unix time at which the oldest outcome came about that its row has yet to be told; 0 for none.',
      registers,
    }),
    oldestReportDueAge: new Gauge({
      name: 'outboxd_oldest_report_due_age_seconds',
      help: 'Seconds since that outcome, by the clock of the ledger; 0 for none.',
      registers,
    }),
    pollsPerTransaction: new Histogram({
      name: 'outboxd_polls_per_transaction',
      help: 'Status requests that one transaction took from acceptance to its end.',
      buckets: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100],
      registers,
    }),
    replays: new Counter({
      name: 'outboxd_replays_total',
      help: 'Submissions that an operator sent through again.',
      registers,
    }),
  }
}

function houseInstruments(registry: Registry) {
  const registers = [registry]
  const loopLastSuccess = new Gauge({
    name: 'outboxd_loop_last_success_timestamp_seconds',
    help: 'Unix time at which a loop of this process last went through; 0 for never.',
    labelNames: ['loop'],
    registers,
  })
  const loopAge = new Gauge({
    name: 'outboxd_loop_last_success_age_seconds',
    help: 'Seconds since a loop of this process last went through, or since the process started; no clock matters.',
    labelNames: ['loop'],
    registers,
  })
  for (const loop of loops) {
    loopLastSuccess.set({ loop }, 0)
    loopAge.set({ loop }, 0)
  }
  const pruned = new Counter({
    name: 'outboxd_pruned_total',
    help: 'What this process has let go of the ledger: submissions, contents (payload, body, result) of others, known ids.',
    labelNames: ['what'],
    registers,
  })
  for (const what of prunedKinds) pruned.inc({ what }, 0)
  const pruneOverdue = new Gauge({
    name: 'outboxd_prune_overdue_seconds',
    help: 'For how long the oldest submission that should have gone from the ledger, or been emptied, has been due; 0 for none.',
    registers,
  })
  const chainBehind = new Gauge({
    name: 'outboxd_audit_chain_behind_seconds',
    help: "For how long the oldest entry of the ledger's logs has waited that is not in their chain; 0 for none.",
    registers,
  })
  const problems = new Gauge({
    name: 'outboxd_problems',
    help: 'What is wrong and stays so until somebody, or time, mends it, by its kind; outboxd status says each in words.',
    labelNames: ['kind'],
    registers,
  })
  for (const kind of problemKinds) problems.set({ kind }, 0)
  const buildInfo = new Gauge({
    name: 'outboxd_build_info',
    help: 'Always 1; the label says which version runs.',
    labelNames: ['version'],
    registers,
  })
  return { loopLastSuccess, loopAge, pruned, pruneOverdue, chainBehind, problems, buildInfo }
}

/** What the daemon needs around it: databases, mapping files, certificates. */
function surroundingInstruments(registry: Registry) {
  const registers = [registry]
  const databaseUp = new Gauge({
    name: 'outboxd_database_up',
    help: '1 while the database answers this process, else 0.',
    labelNames: ['database'],
    registers,
  })
  for (const database of databases) databaseUp.set({ database }, 0)
  const certificateExpiry = new Gauge({
    name: 'outboxd_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which a certificate ends: ours, the first of SERVICE_CA_FILE, the first of those that the service showed last; 0 for none, or not seen yet.',
    labelNames: ['certificate'],
    registers,
  })
  for (const certificate of certificates) certificateExpiry.set({ certificate }, 0)
  return {
    databaseUp,
    certificateExpiry,
    mappingsReloadSuccessful: new Gauge({
      name: 'outboxd_mappings_last_reload_successful',
      help: '1 if the mapping files could be used when they were last read, else 0: those read before stay in force.',
      registers,
    }),
    mappingsReloadTime: new Gauge({
      name: 'outboxd_mappings_last_reload_success_timestamp_seconds',
      help: 'Unix time at which the mapping files in force were read; 0 for never.',
      registers,
    }),
  }
}

/**
 * How far apart the ticks are by which nodejs_eventloop_lag_* measures: that much is no lag. One each 10 ms, as is usual, takes
 * a third of a per cent of a core, where a daemon that has nothing to do takes one.
 */
const tickMs = 100

/** prom-client's own metrics, without three gauges that are named like counters (`promtool check metrics` refuses). */
function addDefaults(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: tickMs })
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
}
