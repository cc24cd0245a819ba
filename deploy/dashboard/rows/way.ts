import type { Row } from '../layout.ts'
import { lines } from '../panels.ts'
import { all, below, endColors, oldest, own, perMinute } from '../queries.ts'

export const way: Row = {
  title: 'The way of the records',
  lines: [
    [
      lines({
        title: 'Records that ended',
        description:
          'By outcome. At most half as many as requests, because each record is sent and polled at least once.',
        width: 12,
        runbook: 'OutboxdRecordsFailing',
        unit: 'suffix: /min',
        stacked: true,
        queries: [perMinute('outcome', 'outboxd_submissions_finished_total', own)],
        colors: endColors,
      }),
      lines({
        title: 'Records under way',
        description:
          'Not yet captured: still in the outbox. Queued: mapped, waiting for their turn. Accepted: the service processes them.',
        width: 12,
        runbook: 'OutboxdStuck',
        stacked: true,
        queries: [
          { expr: `max(outboxd_outbox_waiting{${all}})`, legend: 'not yet captured' },
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
        title: 'Age of the oldest',
        description:
          'Unsent: not accepted by the service. In process: accepted, not ended. Not written back: its outbox row does not have the outcome yet. By the clock of the ledger.',
        width: 8,
        runbook: 'OutboxdTransactionsSlow',
        unit: 's',
        queries: [
          { expr: oldest('unsent'), legend: 'unsent' },
          { expr: oldest('accepted'), legend: 'in process' },
          { expr: oldest('report_due'), legend: 'not written back' },
        ],
      }),
      lines({
        title: 'Outcomes not written back yet',
        description: 'Normal for some seconds. If it stays, the table refuses the write, or a session has it locked.',
        width: 8,
        runbook: 'OutboxdReportsLate',
        queries: [{ expr: `max(outboxd_reports_due{${all}})`, legend: 'to write back' }],
      }),
    ],
  ],
}
