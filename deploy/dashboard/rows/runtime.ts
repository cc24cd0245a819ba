import type { Row } from '../layout.ts'
import { bad, good, lines, soon, stat, table, timeline } from '../panels.ts'
import { all, own, recent } from '../queries.ts'

export const runtime: Row = {
  title: 'The daemon itself',
  lines: [
    [
      table({
        title: 'Versions',
        description:
          'The version of each instance, and since when it runs. Three restarts in half an hour fire an alert.',
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
        none: 'No instance runs',
      }),
      lines({
        title: 'Last completed round, by loop',
        description:
          'Seconds ago, the longest of all instances. The runbook says what stops with each loop. The line is the alert.',
        width: 8,
        runbook: 'OutboxdLoopStalled',
        unit: 's',
        limit: 600,
        queries: [{ expr: `max by (loop) (outboxd_loop_last_success_age_seconds{${own}})`, legend: '{{loop}}' }],
      }),
      timeline({
        title: 'Databases, by instance',
        description: 'If only one instance cannot reach a database, the fault is on its side: its host, its network.',
        width: 8,
        runbook: 'OutboxdDatabaseDown',
        queries: [
          {
            expr: `min by (instance, database) (outboxd_database_up{${own}})`,
            legend: '{{database}}, {{instance}}',
          },
        ],
        words: { 0: 'does not answer', 1: 'answers' },
        steps: [
          [null, bad],
          [1, good],
        ],
      }),
    ],
    [
      stat({
        title: 'The token is valid for',
        description: 'The longest of all instances. Each instance renews its own token in time.',
        width: 6,
        runbook: 'OutboxdTokenExpired',
        unit: 's',
        queries: [{ expr: `max(outboxd_token_expiry_timestamp_seconds{${all}} > 0) - time()`, legend: '' }],
        steps: [
          [null, bad],
          [0, good],
        ],
        none: 'no token',
      }),
      stat({
        title: 'Certificates end in',
        description:
          'client is SERVICE_CERT_FILE, ca the first to end in SERVICE_CA_FILE, service the certificate that the service shows.',
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
        description: 'Broken if they could not be used when they were last read. The former ones then stay in use.',
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
        title: 'Mapping files in use since',
        description: 'The longest of all instances: each should have read the files of the last change.',
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
          'The memory of the process, and the part that JavaScript uses. A backlog in the outbox does not raise it.',
        width: 6,
        unit: 'bytes',
        queries: [
          { expr: `process_resident_memory_bytes{${own}}`, legend: '{{instance}}' },
          { expr: `nodejs_heap_size_used_bytes{${own}}`, legend: '{{instance}}, heap' },
        ],
      }),
      lines({
        title: 'Event loop lag',
        description:
          '99 % of the turns were at most this late. If answers seem slow and this is high, this host is the cause.',
        width: 6,
        runbook: 'OutboxdServiceSlow',
        unit: 's',
        // The metric is at least 0.1 s, because Node measures it between ticks that are 0.1 s apart.
        queries: [{ expr: `clamp_min(nodejs_eventloop_lag_p99_seconds{${own}} - 0.1, 0)`, legend: '{{instance}}' }],
      }),
      lines({
        title: 'Open files',
        description: 'Open files and connections, as a share of what the process may open.',
        width: 6,
        unit: 'percentunit',
        queries: [{ expr: `process_open_fds{${own}} / process_max_fds{${own}}`, legend: '{{instance}}' }],
      }),
    ],
    [
      lines({
        title: 'Pruned from the ledger',
        description:
          'Records that were deleted RETENTION_DAYS after their end, and records whose payloads were deleted.',
        width: 8,
        unit: 'suffix: /min',
        queries: [{ expr: `60 * sum by (what) (rate(outboxd_pruned_total{${own}}${recent}))`, legend: '{{what}}' }],
      }),
      lines({
        title: 'Pruning is behind by',
        description: 'How long the oldest record that should be pruned has been due. More than a day is a problem.',
        width: 8,
        runbook: 'OutboxdProblem',
        unit: 's',
        queries: [{ expr: `max(outboxd_prune_overdue_seconds{${all}})`, legend: '' }],
      }),
      lines({
        title: 'The audit chain is behind by',
        description:
          'How long the oldest log entry has waited to be chained. Half a minute is normal. An entry that is not chained is not pruned.',
        width: 8,
        unit: 's',
        queries: [{ expr: `max(outboxd_audit_chain_behind_seconds{${all}})`, legend: '' }],
      }),
    ],
  ],
}
