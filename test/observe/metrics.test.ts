import { spawnSync } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { problemKinds } from '../../src/model/problem.ts'
import { contractBreaches, pauseReasons, requestOutcomes } from '../../src/model/service.ts'
import { type EndState, states } from '../../src/model/submission.ts'
import type { LoopName, MetricsSnapshot } from '../../src/observe/metricRows.ts'
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts'
import { endpoints } from '../../src/resources.ts'
import { until } from '../support/until.ts'

const finishes = ['completed', 'failed', 'rejected', 'uncertain', 'discarded']

test('each metric names the installation, if it has a name', async () => {
  const { value } = await scrape(createMetrics({ version: '1.2.3', installation: 'TEST', clock: systemClock }))
  expect(value('outboxd_outbox_waiting{installation="TEST"}')).toBe('0')
  expect(value('outboxd_build_info{version="1.2.3",installation="TEST"}')).toBe('1')
})

test('every metric is there from the start, with every label value at 0', async () => {
  const { value } = await scrape(createMetrics({ version: '1.2.3', clock: systemClock }))
  const zeros = [
    ...endpoints.flatMap((endpoint) =>
      requestOutcomes.flatMap((outcome) => [
        `outboxd_requests_total{endpoint="${endpoint}",outcome="${outcome}"}`,
        `outboxd_request_duration_seconds_count{endpoint="${endpoint}",outcome="${outcome}"}`,
        `outboxd_request_duration_seconds_bucket{le="2",endpoint="${endpoint}",outcome="${outcome}"}`,
      ]),
    ),
    ...['E001', 'E002', 'E003', 'other'].map((code) => `outboxd_service_errors_total{code="${code}"}`),
    'outboxd_rate_limit_capacity',
    'outboxd_rate_limit_available',
    'outboxd_rate_limit_held_back',
    'outboxd_rate_limit_wait_seconds_count',
    'outboxd_token_expiry_timestamp_seconds',
    ...pauseReasons.map((reason) => `outboxd_paused{reason="${reason}"}`),
    ...states.map((state) => `outboxd_submissions{state="${state}"}`),
    'outboxd_outbox_waiting',
    'outboxd_oldest_unsent_timestamp_seconds',
    'outboxd_oldest_accepted_timestamp_seconds',
    ...['unsent', 'accepted', 'for_person', 'report_due'].map((which) => `outboxd_oldest_${which}_age_seconds`),
    ...finishes.map((outcome) => `outboxd_submissions_finished_total{outcome="${outcome}"}`),
    ...finishes.map((outcome) => `outboxd_submission_duration_seconds_count{outcome="${outcome}"}`),
    ...finishes.map((outcome) => `outboxd_submissions_finished_by_type_total{type="other",outcome="${outcome}"}`),
    'outboxd_oldest_for_person_timestamp_seconds',
    'outboxd_reports_due',
    'outboxd_oldest_report_due_timestamp_seconds',
    'outboxd_database_up',
    ...['client', 'ca', 'service'].map(
      (certificate) => `outboxd_certificate_expiry_timestamp_seconds{certificate="${certificate}"}`,
    ),
    'outboxd_polls_per_transaction_count',
    'outboxd_replays_total',
    ...problemKinds.map((kind) => `outboxd_problems{kind="${kind}"}`),
    ...contractBreaches.map((kind) => `outboxd_contract_breaches_total{kind="${kind}"}`),
    ...['capture', 'dispatch', 'report', 'heartbeat', 'orphans', 'upkeep', 'observe', 'schedule'].map(
      (loop) => `outboxd_loop_last_success_timestamp_seconds{loop="${loop}"}`,
    ),
  ]
  expect(zeros.filter((series) => value(series) !== '0')).toEqual([])
  expect(value('outboxd_build_info{version="1.2.3"}')).toBe('1')
  expect(value('process_start_time_seconds')).toBeDefined()
})

test('the event loop’s lag is measured ten times a second, to wake an idle process no more often', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  const ticks = monitorEventLoopDelay({ resolution: 100 })
  ticks.enable()
  await until(
    () => ticks.count,
    (count) => count > 2,
  )
  ticks.disable()
  expect(Number((await scrape(metrics)).value('nodejs_eventloop_lag_p50_seconds'))).toBeGreaterThan(0.09)
})

test('events add no series, because label values are a closed set', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  const before = (await scrape(metrics)).ours
  for (const endpoint of endpoints) for (const outcome of requestOutcomes) requestDone(metrics, endpoint, outcome, 10)
  for (const code of ['E001', 'E002', 'E003', 'E999', 'customer 4711 not found', '__proto__'])
    metrics.serviceErrors.add(1, { code: code })
  for (const kind of contractBreaches) metrics.breaches.add(1, { kind })
  finished(metrics, 'completed', 10, 'data')
  loopSucceeded(metrics, 'capture', 1)
  metrics.setSnapshot(snapshot)
  expect((await scrape(metrics)).ours).toEqual(before)
})

test('each handle changes its own metric, with milliseconds as seconds', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  requestDone(metrics, 'submit', 'ok', 2000)
  requestDone(metrics, 'submit', 'ok', 2001)
  metrics.serviceErrors.add(1, { code: 'E003' })
  metrics.serviceErrors.add(1, { code: 'E777' })
  metrics.breaches.add(1, { kind: 'missing_id' })
  finished(metrics, 'failed', 90_000, 'data')
  finished(metrics, 'failed', null, 'unheard of')
  metrics.pollsPerTransaction.observe(3)
  metrics.requestWait.observe(1500)
  metrics.tokenExpiry.set(1_800_000_000_500)
  metrics.replays.add(7)
  loopSucceeded(metrics, 'report', 1_700_000_000_000)
  const { value } = await scrape(metrics)
  expect(value('outboxd_requests_total{endpoint="submit",outcome="ok"}')).toBe('2')
  expect(value('outboxd_request_duration_seconds_bucket{le="2",endpoint="submit",outcome="ok"}')).toBe('1')
  expect(value('outboxd_service_errors_total{code="E003"}')).toBe('1')
  expect(value('outboxd_service_errors_total{code="other"}')).toBe('1')
  expect(value('outboxd_contract_breaches_total{kind="missing_id"}')).toBe('1')
  expect(value('outboxd_submissions_finished_total{outcome="failed"}')).toBe('2')
  expect(value('outboxd_submission_duration_seconds_sum{outcome="failed"}')).toBe('90')
  expect(value('outboxd_submission_duration_seconds_count{outcome="failed"}')).toBe('1')
  expect(value('outboxd_polls_per_transaction_sum')).toBe('3')
  expect(value('outboxd_rate_limit_wait_seconds_sum')).toBe('1.5')
  expect(value('outboxd_token_expiry_timestamp_seconds')).toBe('1800000000.5')
  expect(value('outboxd_replays_total')).toBe('7')
  expect(value('outboxd_loop_last_success_timestamp_seconds{loop="report"}')).toBe('1700000000')
})

test('a snapshot sets every gauge of the databases, and the next one resets what is over', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  metrics.setSnapshot(snapshot)
  const during = await scrape(metrics)
  expect(during.value('outboxd_submissions{state="uncertain"}')).toBe('6')
  expect(during.value('outboxd_paused{reason="throttled"}')).toBe('1')
  expect(during.value('outboxd_paused{reason="operator"}')).toBe('0')
  expect(during.value('outboxd_outbox_waiting')).toBe('40')
  expect(during.value('outboxd_oldest_unsent_timestamp_seconds')).toBe('1700000000.25')
  expect(during.value('outboxd_oldest_accepted_timestamp_seconds')).toBe('1700000001')
  expect(during.value('outboxd_oldest_for_person_timestamp_seconds')).toBe('1700000003')
  expect(during.value('outboxd_reports_due')).toBe('3')
  expect(during.value('outboxd_oldest_report_due_timestamp_seconds')).toBe('1700000002')
  expect(during.value('outboxd_rate_limit_capacity')).toBe('100')
  expect(during.value('outboxd_rate_limit_available')).toBe('99')
  expect(during.value('outboxd_rate_limit_held_back')).toBe('12')

  metrics.setSnapshot({ ...snapshot, pauses: [], oldestUnsentMs: null, oldestAcceptedMs: null })
  const after = await scrape(metrics)
  expect(after.value('outboxd_paused{reason="throttled"}')).toBe('0')
  expect(after.value('outboxd_oldest_unsent_timestamp_seconds')).toBe('0')
  expect(after.value('outboxd_oldest_accepted_timestamp_seconds')).toBe('0')
})

test('ages follow the ledger’s clock, and between snapshots a stopwatch, never the host’s clock', async () => {
  const clock = stoppedClock()
  const metrics = createMetrics({ version: '1', clock })
  const ages = async () => {
    const { value } = await scrape(metrics)
    return ['unsent', 'accepted', 'for_person', 'report_due'].map((which) =>
      value(`outboxd_oldest_${which}_age_seconds`),
    )
  }
  metrics.setSnapshot({ ...snapshot, oldestForPersonMs: null, oldestReportDueMs: snapshot.nowMs + 5_000 })
  expect(await ages()).toEqual(['59.75', '59', '0', '0'])
  clock.ms += 10_000
  expect(await ages()).toEqual(['69.75', '69', '0', '5'])
  metrics.setSnapshot({ ...snapshot, nowMs: snapshot.nowMs + 20_000, oldestUnsentMs: null })
  expect(await ages()).toEqual(['0', '79', '77', '78'])
})

test('the age of a loop’s last success grows until the next success, or from the start if there was none', async () => {
  const clock = stoppedClock()
  const metrics = createMetrics({ version: '1', clock })
  const age = async (loop: string) =>
    (await scrape(metrics)).value(`outboxd_loop_last_success_age_seconds{loop="${loop}"}`)
  clock.ms += 3_000
  loopSucceeded(metrics, 'capture', 1_700_000_000_000)
  clock.ms += 4_000
  expect([await age('capture'), await age('dispatch')]).toEqual(['4', '7'])
})

test('ends are counted by the types of the mapping files, as soon as the files are read', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  const ends = (type: string, outcome: string) =>
    `outboxd_submissions_finished_by_type_total{type="${type}",outcome="${outcome}"}`
  metrics.mappingsLoaded(['data', 'order'])
  for (const type of ['data', 'data', 'Jane Doe']) finished(metrics, 'failed', null, type)
  const { value, text } = await scrape(metrics)
  expect([value(ends('data', 'failed')), value(ends('order', 'failed')), value(ends('other', 'failed'))]).toEqual([
    '2',
    '0',
    '1',
  ])
  expect(value('outboxd_submissions_finished_total{outcome="failed"}')).toBe('3')
  expect(text).not.toContain('Jane')
  metrics.mappingsLoaded(['data', 'order', 'greeting'])
  const after = await scrape(metrics)
  expect([after.value(ends('data', 'failed')), after.value(ends('greeting', 'failed'))]).toEqual(['2', '0'])
})

test('certificates are labelled with their names', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  metrics.certificateExpiry.set(1_800_000_000_000, { certificate: 'client' })
  metrics.certificateExpiry.set(null, { certificate: 'ca' })
  const { value } = await scrape(metrics)
  const end = (certificate: string) =>
    value(`outboxd_certificate_expiry_timestamp_seconds{certificate="${certificate}"}`)
  expect([end('client'), end('ca'), end('service')]).toEqual(['1800000000', '0', '0'])
})

test('invalid numbers cause no error and do not appear', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  for (const nonsense of [Number.NaN, Number.POSITIVE_INFINITY, undefined as unknown as number]) {
    requestDone(metrics, 'token', 'ok', nonsense)
    finished(metrics, 'completed', nonsense, 'data')
    metrics.requestWait.observe(nonsense)
    metrics.replays.add(nonsense)
    metrics.tokenExpiry.set(nonsense)
    metrics.setSnapshot({ ...snapshot, rateCapacity: nonsense })
  }
  metrics.replays.add(-1)
  finished(metrics, 'discarded', -5, 'data')
  const { value, text } = await scrape(metrics)
  expect(text).not.toMatch(/^outboxd_.*(nan|inf)$/im)
  expect(value('outboxd_requests_total{endpoint="token",outcome="ok"}')).toBe('3')
  expect(value('outboxd_replays_total')).toBe('0')
  expect(value('outboxd_submission_duration_seconds_bucket{le="1",outcome="discarded"}')).toBe('1')
})

test('two sets of metrics in one process share nothing', async () => {
  const one = createMetrics({ version: '1', clock: systemClock })
  const other = createMetrics({ version: '2', clock: systemClock })
  one.replays.add(3)
  expect((await scrape(other)).value('outboxd_replays_total')).toBe('0')
})

test('every metric of ours has a help text, and only counters end in _total', async () => {
  const { text } = await scrape(createMetrics({ version: '1', clock: systemClock }))
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  expect(types.filter(([, name, type]) => name?.endsWith('_total') !== (type === 'counter'))).toEqual([])
  for (const [, name] of types) expect(text).toMatch(new RegExp(`^# HELP ${name} \\S.{10}`, 'm'))
})

test.skipIf(spawnSync('promtool', ['--version']).error)('promtool finds no mistake in a scrape', async () => {
  const metrics = createMetrics({ version: '1', clock: systemClock })
  requestDone(metrics, 'submit', 'ok', 100)
  metrics.setSnapshot(snapshot)
  const check = spawnSync('promtool', ['check', 'metrics'], { input: await metrics.render(), encoding: 'utf8' })
  expect(check.stdout + check.stderr).toBe('')
  expect(check.status).toBe(0)
})

type Labels = Parameters<Metrics['requests']['add']>[1]

function requestDone(metrics: Metrics, endpoint: Labels['endpoint'], outcome: Labels['outcome'], tookMs: number) {
  metrics.requests.add(1, { endpoint, outcome })
  metrics.requestDuration.observe(tookMs, { endpoint, outcome })
}

function finished(metrics: Metrics, outcome: EndState, lifetimeMs: number | null, type: string) {
  metrics.finished.add(1, { outcome })
  metrics.finishedByType.add(1, { type, outcome })
  metrics.submissionDuration.observe(lifetimeMs, { outcome })
}

function loopSucceeded(metrics: Metrics, loop: LoopName, atMs: number) {
  metrics.loopLastSuccess.set(atMs, { loop })
  metrics.loopAge.restart({ loop })
}

/** A clock that moves only when the test sets `ms`. */
function stoppedClock() {
  const clock = {
    ms: 0,
    stopwatch() {
      const startMs = clock.ms
      return () => clock.ms - startMs
    },
  }
  return clock
}

const snapshot: MetricsSnapshot = {
  nowMs: 1_700_000_060_000,
  submissions: {
    queued: 1,
    sending: 2,
    accepted: 3,
    completed: 4,
    failed: 5,
    rejected: 5,
    uncertain: 6,
    discarded: 7,
  },
  changedAfterSent: 2,
  outboxWaiting: 40,
  oldestUnsentMs: 1_700_000_000_250,
  oldestAcceptedMs: 1_700_000_001_000,
  pauses: ['throttled', 'unavailable'],
  problems: { row_skipped: 2 },
  oldestForPersonMs: 1_700_000_003_000,
  reportsDue: 3,
  oldestReportDueMs: 1_700_000_002_000,
  rateCapacity: 100,
  rateAvailable: 99,
  rateHeldBack: 12,
}

async function scrape(metrics: { render(): Promise<string> }) {
  const text = await metrics.render()
  const values = new Map(
    text
      .split('\n')
      .filter((line) => line && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)] as const),
  )
  return {
    text,
    value: (series: string) => values.get(series),
    ours: [...values.keys()].filter((series) => series.startsWith('outboxd_')),
  }
}
