import type { Row } from '../layout.ts'
import { bad, good, lines } from '../panels.ts'
import { all, below, own, perMinute, recent } from '../queries.ts'

export const budget: Row = {
  title: 'The request budget',
  lines: [
    [
      lines({
        title: 'Free requests',
        description:
          'Requests of the window that no instance has used. Near 0 while a backlog is sent is normal. Held back: left unused, because another client spends from the same budget.',
        width: 8,
        runbook: 'OutboxdBudgetShared',
        queries: [
          { expr: `max(outboxd_rate_limit_capacity{${all}})`, legend: 'allowed' },
          { expr: `max(outboxd_rate_limit_available{${all}})`, legend: 'free' },
          { expr: `max(outboxd_rate_limit_held_back{${all}})`, legend: 'held back' },
        ],
        colors: { allowed: 'text', free: good, 'held back': bad },
      }),
      lines({
        title: 'Requests by endpoint',
        description: 'submit and order send records, status and order_status ask about them, token signs in.',
        width: 8,
        unit: 'suffix: /min',
        stacked: true,
        queries: [perMinute('endpoint', 'outboxd_requests_total', own)],
      }),
      lines({
        title: 'Time waited for a slot',
        description: 'How long half and 95 % of the requests waited for a slot of the budget.',
        width: 4,
        runbook: 'OutboxdBehind',
        unit: 's',
        queries: [50, 95].map((percent) => below(percent, 'outboxd_rate_limit_wait_seconds', own)),
      }),
      lines({
        title: 'Polls per transaction',
        description: 'Each poll costs a request. Near 1 while requests are scarce, more while the budget is idle.',
        width: 4,
        queries: [
          {
            expr: `sum(rate(outboxd_polls_per_transaction_sum{${own}}${recent})) / sum(rate(outboxd_polls_per_transaction_count{${own}}${recent}))`,
            legend: 'on average',
          },
        ],
      }),
    ],
  ],
}
