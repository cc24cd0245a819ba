import type { Row } from '../layout.ts'
import { bad, good, lines } from '../panels.ts'
import { all, below, own, perMinute, recent } from '../queries.ts'

export const budget: Row = {
  title: 'The budget of requests',
  lines: [
    [
      lines({
        title: 'Requests that could be made at once',
        description:
          'Of those that the budget allows in a window, all instances together. Near 0 while a backlog is sent, as it should be. Held back: left unused, since somebody else spends from the same budget.',
        width: 8,
        runbook: 'OutboxdBudgetShared',
        queries: [
          { expr: `max(outboxd_rate_limit_capacity{${all}})`, legend: 'the budget allows' },
          { expr: `max(outboxd_rate_limit_available{${all}})`, legend: 'free' },
          { expr: `max(outboxd_rate_limit_held_back{${all}})`, legend: 'held back' },
        ],
        colors: { 'the budget allows': 'text', free: good, 'held back': bad },
      }),
      lines({
        title: 'What it is spent on',
        description:
          'Requests by endpoint: submit and order send records, status and order_status ask what has become of them.',
        width: 8,
        unit: 'suffix: /min',
        stacked: true,
        queries: [perMinute('endpoint', 'outboxd_requests_total', own)],
      }),
      lines({
        title: 'A piece of work waits for its request',
        description: 'How long half and 95 % of them waited for a slot.',
        width: 4,
        runbook: 'OutboxdBehind',
        unit: 's',
        queries: [50, 95].map((percent) => below(percent, 'outboxd_rate_limit_wait_seconds', own)),
      }),
      lines({
        title: 'Questions for one transaction',
        description: 'Each costs a request. Near 1 while requests are short, more while they lie idle.',
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
