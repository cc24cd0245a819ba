import type { Row } from '../layout.ts'
import { bad, good, soon, stat, table, timeline } from '../panels.ts'
import { all, oldest } from '../queries.ts'

export const now: Row = {
  title: 'Now',
  lines: [
    [
      stat({
        title: 'Instances',
        description: 'Daemons that Prometheus reaches. One is enough to send everything.',
        width: 3,
        runbook: 'OutboxdAbsent',
        queries: [{ expr: `count(outboxd_build_info{${all}})`, legend: '' }],
        steps: [
          [null, bad],
          [1, good],
        ],
        none: 'none',
      }),
      stat({
        title: 'Sending',
        description:
          'Paused if a pause keeps all instances from sending. The panel Pauses has the reason. Records wait, and no record is lost.',
        width: 3,
        runbook: 'OutboxdPaused',
        queries: [{ expr: `max(outboxd_paused{${all}})`, legend: '' }],
        steps: [
          [null, good],
          [1, soon],
        ],
        words: { 0: 'sending', 1: 'paused' },
      }),
      stat({
        title: 'Databases',
        description: 'Up if at least one instance reaches the outbox, and the ledger.',
        width: 3,
        runbook: 'OutboxdDatabaseDown',
        queries: [{ expr: `max by (database) (outboxd_database_up{${all}})`, legend: '{{database}}' }],
        steps: [
          [null, bad],
          [1, good],
        ],
        words: { 0: 'does not answer', 1: 'answers' },
      }),
      stat({
        title: 'Not yet captured',
        description: 'Rows of the outbox that no instance has captured. A large import waits here and costs nothing.',
        width: 3,
        runbook: 'OutboxdBehind',
        queries: [{ expr: `max(outboxd_outbox_waiting{${all}})`, legend: '' }],
        steps: [[null, 'blue']],
      }),
      stat({
        title: 'Under way',
        description: 'Records that are queued, being sent, or processed by the service.',
        width: 3,
        queries: [
          {
            expr: `sum(max by (state) (outboxd_submissions{${all},state=~"queued|sending|accepted"}))`,
            legend: '',
          },
        ],
        steps: [[null, 'blue']],
      }),
      stat({
        title: 'Oldest unsent',
        description: 'Age of the oldest record that the service has not accepted, from the creation of its row.',
        width: 3,
        runbook: 'OutboxdBehind',
        unit: 's',
        queries: [{ expr: oldest('unsent'), legend: '' }],
        steps: [
          [null, good],
          [900, soon],
          [3600, bad],
        ],
      }),
      stat({
        title: 'Need attention',
        description:
          'Failed, rejected and uncertain records. `outboxd list` shows them, `outboxd list --by-cause` the causes.',
        width: 3,
        runbook: 'OutboxdForgotten',
        queries: [
          {
            expr: `sum(max by (state) (outboxd_submissions{${all},state=~"failed|rejected|uncertain"}))`,
            legend: '',
          },
        ],
        steps: [
          [null, good],
          [1, soon],
        ],
      }),
      stat({
        title: 'Problems',
        description: 'Problems that last until they are fixed or pass. `outboxd status` explains each.',
        width: 3,
        runbook: 'OutboxdProblem',
        queries: [{ expr: `sum(max by (kind) (outboxd_problems{${all}}))`, legend: '' }],
        steps: [
          [null, good],
          [1, soon],
        ],
      }),
    ],
    [
      timeline({
        title: 'Pauses',
        description:
          'When sending was paused, and why. A pause uses up no attempt. All pauses but the operator’s end by themselves; `history` may need `outboxd recover`.',
        width: 12,
        runbook: 'OutboxdPaused',
        queries: [{ expr: `max by (reason) (outboxd_paused{${all}})`, legend: '{{reason}}' }],
        words: { 0: 'no pause', 1: 'paused' },
        steps: [
          [null, 'transparent'],
          [1, soon],
        ],
      }),
      table({
        title: 'Firing alerts',
        description: 'The alerts of deploy/prometheus-rules.yaml. The runbook has a section for each, under its name.',
        width: 12,
        runbook: 'Before-anything-else',
        queries: [{ expr: `ALERTS{alertname=~"Outboxd.*",alertstate="firing",job=~"$job|"}`, legend: '' }],
        columns: ['alertname', 'severity', 'instance', 'reason', 'kind', 'database'],
        none: 'No alert fires',
      }),
    ],
  ],
}
