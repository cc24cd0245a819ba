import type { Row } from '../layout.ts'
import { bad, good, lines, soon, stat, table, timeline } from '../panels.ts'
import { all, own, recent } from '../queries.ts'

export const runtime: Row = {
  title: 'The daemon itself',
  lines: [
    [
      table({
        title: 'Versions',
        description: 'Which version runs where, and since when. Three restarts in half an hour are an alert.',
        width: 8,
        runbook: 'OutboxdRestarting',
        unit: 's',
        queries: [
          {
            expr: `(time() - process_start_time_seconds{${own}}) * on (job, instance) group_left (version) outboxd_build_info{${own}}`,
            legend: '',
          },
        ],
        columns: ['instance', 'version'],
        valueIs: 'runs for',
        none: 'None runs',
      }),
      lines({
        title: 'A loop last went through',
        description:
          'Seconds ago, the longest of all instances. What stands still with which loop is a table of the runbook. The line is the alert.',
        width: 8,
        runbook: 'OutboxdLoopStalled',
        unit: 's',
        limit: 600,
        queries: [{ expr: `max by (loop) (outboxd_loop_last_success_age_seconds{${own}})`, legend: '{{loop}}' }],
      }),
      timeline({
        title: 'Databases, as each instance sees them',
        description:
          'One instance alone that does not reach a database has a trouble of its own: its host, its network.',
        width: 8,
        runbook: 'OutboxdDatabaseDown',
        queries: [
          {
            expr: `min by (instance, database) (outboxd_database_up{${own}})`,
            legend: '{{database}}, {{instance}}',
          },
        ],
        words: { 0: 'away', 1: 'answers' },
        steps: [
          [null, bad],
          [1, good],
        ],
      }),
    ],
    [
      stat({
        title: 'The token is valid for',
        description: 'That of the instance whose token lasts longest; each renews its own in time.',
        width: 6,
        runbook: 'OutboxdTokenExpired',
        unit: 's',
        queries: [{ expr: `max(outboxd_token_expiry_timestamp_seconds{${all}} > 0) - time()`, legend: '' }],
        steps: [
          [null, bad],
          [0, good],
        ],
        none: 'no token yet',
      }),
      stat({
        title: 'Certificates end in',
        description: 'client is ours, ca the first to end of SERVICE_CA_FILE, service the one that the service shows.',
        width: 9,
        runbook: 'OutboxdCertificateExpires',
        unit: 's',
        queries: [
          {
            expr: `min by (certificate) (outboxd_certificate_expiry_timestamp_seconds{${all}} > 0) - time()`,
            legend: '{{certificate}}',
          },
        ],
        steps: [
          [null, bad],
          [2 * 86400, soon],
          [14 * 86400, good],
        ],
        none: 'none in use',
      }),
      stat({
        title: 'Mapping files',
        description: 'Whether they could be used when they were last read; where not, those before stay in force.',
        width: 3,
        runbook: 'OutboxdMappingsBroken',
        queries: [{ expr: `min(outboxd_mappings_last_reload_successful{${all}})`, legend: '' }],
        steps: [
          [null, bad],
          [1, good],
        ],
        words: { 0: 'broken', 1: 'good' },
      }),
      stat({
        title: 'Mapping files in force since',
        description: 'How long ago the instance read them that read them first: all should have those of today.',
        width: 6,
        unit: 's',
        queries: [
          {
            expr: `time() - min(outboxd_mappings_last_reload_success_timestamp_seconds{${all}} > 0)`,
            legend: '',
          },
        ],
        steps: [[null, 'blue']],
      }),
    ],
    [
      lines({
        title: 'CPU',
        description: '100 % is one core.',
        width: 6,
        unit: 'percentunit',
        queries: [{ expr: `rate(process_cpu_seconds_total{${own}}${recent})`, legend: '{{instance}}' }],
      }),
      lines({
        title: 'Memory',
        description:
          'What the process has, and what of it is JavaScript’s. It stays level, whatever waits in the outbox.',
        width: 6,
        unit: 'bytes',
        queries: [
          { expr: `process_resident_memory_bytes{${own}}`, legend: '{{instance}}' },
          { expr: `nodejs_heap_size_used_bytes{${own}}`, legend: '{{instance}}, heap' },
        ],
      }),
      lines({
        title: 'The event loop lags by',
        description: '99 % of its turns were not later. Where answers seem slow and this is too, it is our host.',
        width: 6,
        runbook: 'OutboxdServiceSlow',
        unit: 's',
        // It is measured between ticks that are 0.1 s apart.
        queries: [{ expr: `clamp_min(nodejs_eventloop_lag_p99_seconds{${own}} - 0.1, 0)`, legend: '{{instance}}' }],
      }),
      lines({
        title: 'Open files',
        description: 'Of those that the process may have open, connections included.',
        width: 6,
        unit: 'percentunit',
        queries: [{ expr: `process_open_fds{${own}} / process_max_fds{${own}}`, legend: '{{instance}}' }],
      }),
    ],
    [
      lines({
        title: 'The ledger lets go',
        description: 'Records that were deleted RETENTION_DAYS after their end, and those whose contents were emptied.',
        width: 8,
        unit: 'suffix: /min',
        queries: [{ expr: `60 * sum by (what) (rate(outboxd_pruned_total{${own}}${recent}))`, legend: '{{what}}' }],
      }),
      lines({
        title: 'Pruning is behind by',
        description:
          'For how long the oldest that should have gone from the ledger has been due. A day and more is a problem.',
        width: 8,
        runbook: 'OutboxdProblem',
        unit: 's',
        queries: [{ expr: `max(outboxd_prune_overdue_seconds{${all}})`, legend: '' }],
      }),
      lines({
        title: 'The audit chain is behind by',
        description:
          'For how long the oldest entry of the logs has waited to be chained. Half a minute is usual; what is not chained is not pruned.',
        width: 8,
        unit: 's',
        queries: [{ expr: `max(outboxd_audit_chain_behind_seconds{${all}})`, legend: '' }],
      }),
    ],
  ],
}
