import type { Row } from '../layout.ts'
import { lines } from '../panels.ts'
import { all, below, endColors, oldest, own, perMinute } from '../queries.ts'

export const way: Row = {
  title: 'The way of the records',
  lines: [
    [
      lines({
        title: 'Records that ended',
        description: 'By how. At most half as many as requests: each is sent, and asked for at least once.',
        width: 12,
        runbook: 'OutboxdRecordsFailing',
        unit: 'suffix: /min',
        stacked: true,
        queries: [perMinute('outcome', 'outboxd_submissions_finished_total', own)],
        colors: endColors,
      }),
      lines({
        title: 'Records on their way',
        description:
          'Not yet taken: still in the outbox. Queued: mapped, wait for their turn. Accepted: the service processes them.',
        width: 12,
        runbook: 'OutboxdStuck',
        stacked: true,
        queries: [
          { expr: `max(outboxd_outbox_waiting{${all}})`, legend: 'not yet taken' },
          {
            expr: `max by (state) (outboxd_submissions{${all},state=~"queued|sending|accepted"})`,
            legend: '{{state}}',
          },
        ],
      }),
    ],
    [
      lines({
        title: 'From the row’s creation to the end',
        description: 'How long half and 95 % of the completed records took, waiting included.',
        width: 8,
        unit: 's',
        queries: [50, 95].map((percent) =>
          below(percent, 'outboxd_submission_duration_seconds', `${own},outcome="completed"`),
        ),
      }),
      lines({
        title: 'The oldest has waited for',
        description:
          'Unsent: not accepted by the service. In process: accepted, and not yet ended. Not told: its row in the outbox does not say yet what became of it. By the clock of the ledger.',
        width: 8,
        runbook: 'OutboxdTransactionsSlow',
        unit: 's',
        queries: [
          { expr: oldest('unsent'), legend: 'unsent' },
          { expr: oldest('accepted'), legend: 'in process' },
          { expr: oldest('report_due'), legend: 'not told' },
        ],
      }),
      lines({
        title: 'Outcomes that the outbox is not told yet',
        description:
          'Normal for some seconds. When it stays: the table refuses what we write, or somebody has it locked.',
        width: 8,
        runbook: 'OutboxdReportsLate',
        queries: [{ expr: `max(outboxd_reports_due{${all}})`, legend: 'to tell' }],
      }),
    ],
  ],
}
