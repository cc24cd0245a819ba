import type { Row } from '../layout.ts'
import { bad, good, lines, soon, stat } from '../panels.ts'
import { all, below, outcomeColors, own, perMinute, recent, theirFault, within2s } from '../queries.ts'

/** The share of requests that met one of the two targets, 99 % each. */
const share = ({ expr, ...panel }: { title: string; description: string; runbook: string; expr: string }) =>
  stat({
    ...panel,
    width: 6,
    unit: 'percentunit',
    decimals: 2,
    queries: [{ expr, legend: '' }],
    steps: [
      [null, bad],
      [0.99, good],
    ],
    none: 'no requests',
  })

export const service: Row = {
  title: 'The service against its two targets',
  lines: [
    [
      share({
        title: 'Succeeded, in the time shown',
        description:
          'Requests that the service answered as it should, also by a rejection. The target is 99 % over 30 days: choose 30 days above. docs/run/slo.md says what counts.',
        runbook: 'OutboxdServiceFailing',
        expr: `1 - sum(increase(outboxd_requests_total{${all},${theirFault}}[$__range])) / (sum(increase(outboxd_requests_total{${all}}[$__range])) > 0)`,
      }),
      share({
        title: 'Answered within 2 s, in the time shown',
        description:
          'The second target, also 99 % over 30 days. A timeout counts as slow, a lost connection does not count.',
        runbook: 'OutboxdServiceSlow',
        expr: `sum(increase(outboxd_request_duration_seconds_bucket{${all},${within2s}}[$__range])) / (sum(increase(outboxd_request_duration_seconds_count{${all},outcome!="network"}[$__range])) > 0)`,
      }),
      stat({
        title: 'Burn rate of failures',
        description:
          'How many times faster than allowed the 1 % was used up in the last hour: at 1 it lasts 30 days, at 14.4 two. Needs the recording rules of deploy/prometheus-rules.yaml.',
        width: 6,
        runbook: 'OutboxdServiceFailing',
        unit: 'suffix: ×',
        decimals: 1,
        queries: [{ expr: `outboxd:requests_failed:ratio_1h{${all}} / 0.01`, legend: '' }],
        steps: [
          [null, good],
          [1, soon],
          [14.4, bad],
        ],
        none: 'no requests',
      }),
      stat({
        title: 'Burn rate of slow answers',
        description: 'The same for answers that take longer than 2 s.',
        width: 6,
        runbook: 'OutboxdServiceSlow',
        unit: 'suffix: ×',
        decimals: 1,
        queries: [{ expr: `outboxd:requests_slow:ratio_1h{${all}} / 0.01`, legend: '' }],
        steps: [
          [null, good],
          [1, soon],
          [14.4, bad],
        ],
        none: 'no requests',
      }),
    ],
    [
      lines({
        title: 'Time to answer',
        description: 'Half, 95 % and 99 % of the answers came within this time. The line is the target, 2 s.',
        width: 12,
        runbook: 'OutboxdServiceSlow',
        unit: 's',
        limit: 2,
        queries: [50, 95, 99].map((percent) =>
          below(percent, 'outboxd_request_duration_seconds', `${own},outcome!="network"`),
        ),
      }),
      lines({
        title: 'Time to answer, by endpoint',
        description:
          '95 % of the answers came within this time. If all endpoints are slow at once, it may be the network or this host. The line is the target, 2 s.',
        width: 12,
        runbook: 'OutboxdServiceSlow',
        unit: 's',
        limit: 2,
        queries: [
          {
            expr: `histogram_quantile(0.95, sum by (le, endpoint) (rate(outboxd_request_duration_seconds_bucket{${own},outcome!="network"}${recent})))`,
            legend: '{{endpoint}}',
          },
        ],
      }),
    ],
    [
      lines({
        title: 'Requests by outcome',
        description:
          'server_error, unavailable, timeout and network count against the service. rejected, unauthorized and throttled do not.',
        width: 9,
        runbook: 'OutboxdServiceFailing',
        unit: 'suffix: /min',
        stacked: true,
        queries: [perMinute('outcome', 'outboxd_requests_total', own)],
        colors: outcomeColors,
      }),
      lines({
        title: 'Share of failed and of slow requests',
        description: 'Over the last 5 minutes and the last hour. The line is the 1 % that the targets allow.',
        width: 9,
        runbook: 'OutboxdServiceFailingSlowly',
        unit: 'percentunit',
        limit: 0.01,
        queries: [
          { expr: `outboxd:requests_failed:ratio_5m{${all}}`, legend: 'failed, 5 min' },
          { expr: `outboxd:requests_failed:ratio_1h{${all}}`, legend: 'failed, 1 h' },
          { expr: `outboxd:requests_slow:ratio_5m{${all}}`, legend: 'slow, 5 min' },
          { expr: `outboxd:requests_slow:ratio_1h{${all}}`, legend: 'slow, 1 h' },
        ],
      }),
      lines({
        title: 'Errors and breaches of contract',
        description:
          'The service’s error codes (E001: the data; E002: an id twice; E003: unavailable), and answers that its interface does not allow.',
        width: 6,
        runbook: 'OutboxdContractBreach',
        bars: true,
        queries: [
          { expr: `sum by (code) (increase(outboxd_service_errors_total{${own}}${recent}))`, legend: '{{code}}' },
          { expr: `sum by (kind) (increase(outboxd_contract_breaches_total{${own}}${recent}))`, legend: '{{kind}}' },
        ],
      }),
    ],
  ],
}
