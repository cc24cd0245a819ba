import type { Row } from '../layout.ts'
import { bad, good, lines, soon, stat, table } from '../panels.ts'
import { all, endColors, oldest, own, recent } from '../queries.ts'

export const person: Row = {
  title: 'Waiting for a person',
  lines: [
    [
      lines({
        title: 'Records that wait for a person',
        description:
          'Failed and rejected: replay or discard. Uncertain: nobody knows whether they arrived; ask the operator of the service.',
        width: 8,
        runbook: 'OutboxdUncertain',
        stacked: true,
        queries: [
          {
            expr: `max by (state) (outboxd_submissions{${all},state=~"failed|rejected|uncertain"})`,
            legend: '{{state}}',
          },
        ],
        colors: endColors,
      }),
      stat({
        title: 'The oldest of them',
        description: 'How long the failed or rejected record that has waited longest has waited.',
        width: 4,
        runbook: 'OutboxdForgotten',
        unit: 's',
        queries: [{ expr: oldest('for_person'), legend: '' }],
        steps: [
          [null, good],
          [3600, soon],
          [86400, bad],
        ],
      }),
      lines({
        title: 'Did not go through, by type',
        description:
          'A mapping that is wrong shows itself as one type; types that no mapping file knows are called other.',
        width: 12,
        runbook: 'OutboxdRecordsFailing',
        bars: true,
        queries: [
          {
            expr: `sum by (type, outcome) (increase(outboxd_submissions_finished_by_type_total{${own},outcome=~"failed|rejected|uncertain"}${recent}))`,
            legend: '{{type}}: {{outcome}}',
          },
        ],
      }),
    ],
    [
      table({
        title: 'Problems that stand',
        description:
          'Each stays until somebody, or time, mends it. outboxd status says what it is about, and the command that helps.',
        width: 12,
        runbook: 'OutboxdProblem',
        queries: [{ expr: `max by (kind) (outboxd_problems{${all}}) > 0`, legend: '' }],
        columns: ['kind'],
        valueIs: 'how many',
        none: 'None',
      }),
      lines({
        title: 'What operators did',
        description: 'Records that they sent again, and that they gave up.',
        width: 12,
        bars: true,
        queries: [
          { expr: `sum(increase(outboxd_replays_total{${own}}${recent}))`, legend: 'sent again' },
          {
            expr: `sum(increase(outboxd_submissions_finished_total{${own},outcome="discarded"}${recent}))`,
            legend: 'given up',
          },
        ],
      }),
    ],
  ],
}
