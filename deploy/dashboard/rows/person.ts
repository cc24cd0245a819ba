import type { Row } from '../layout.ts'
import { bad, good, lines, soon, stat, table } from '../panels.ts'
import { all, endColors, oldest, own, recent } from '../queries.ts'

export const person: Row = {
  title: 'Needs attention',
  lines: [
    [
      lines({
        title: 'Records that need attention',
        description:
          'Failed and rejected: replay or discard. Uncertain: they may or may not have arrived; ask the service’s operator.',
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
        title: 'The oldest that needs attention',
        description: 'How long the oldest failed or rejected record has needed attention.',
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
        title: 'Failed or rejected, by type',
        description: 'A wrong mapping shows as one type. Types without a mapping file are called other.',
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
        title: 'Open problems',
        description:
          'Each stays until it is fixed or passes. `outboxd status` says what it is about, and which command helps.',
        width: 12,
        runbook: 'OutboxdProblem',
        queries: [{ expr: `max by (kind) (outboxd_problems{${all}}) > 0`, legend: '' }],
        columns: ['kind'],
        valueIs: 'how many',
        none: 'None',
      }),
      lines({
        title: 'What operators did',
        description: 'Records that operators sent again, and that they discarded.',
        width: 12,
        bars: true,
        queries: [
          { expr: `sum(increase(outboxd_replays_total{${own}}${recent}))`, legend: 'sent again' },
          {
            expr: `sum(increase(outboxd_submissions_finished_total{${own},outcome="discarded"}${recent}))`,
            legend: 'discarded',
          },
        ],
      }),
    ],
  ],
}
