import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDaemonProcess } from '../support/daemon.ts'
import { freePort } from '../support/freePort.ts'
import { has, startPrometheus } from '../support/monitoring.ts'
import { checkout } from '../support/program.ts'
import { until } from '../support/until.ts'
import { type Harness, setup } from './faults/harness.ts'

/**
 * Runs every query of deploy/grafana-dashboard.json on a Prometheus that has scraped a daemon with pauses and problems.
 */

interface Panel {
  title: string
  targets?: { expr: string; instant?: boolean }[]
  panels?: Panel[]
}

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')
const dashboard: {
  panels: Panel[]
  annotations: { list: { name: string; expr: string }[] }
} = JSON.parse(read('deploy/grafana-dashboard.json'))

const asked = [
  ...dashboard.panels
    .flatMap((panel) => [panel, ...(panel.panels ?? [])])
    .flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, instant }) => ({ title, expr, at: instant ? ('now' as const) : ('any time' as const) })),
    ),
  ...dashboard.annotations.list.map(({ name, expr }) => ({ title: name, expr, at: 'any time' as const })),
]

describe.skipIf(!has('prometheus'))('with a real Prometheus (Debian’s package)', () => {
  const stack = new AsyncDisposableStack()
  let prometheus: Prometheus
  beforeAll(async () => {
    const harness = stack.use(await setup())
    const port = await freePort()
    stack.use(await startDaemonProcess({ ...harness.env, ...certificates, HTTP_PORT: String(port) }))
    prometheus = openPrometheus(stack.use(await startPrometheus(configOf(port), { 'rules.yaml': impatientRules })).url)
    await haveABadMinute(harness, prometheus)
  })
  afterAll(() => stack.disposeAsync())

  test.each(asked)('the query of $title has data: $expr', async ({ expr, at }) => {
    // The fallback `or vector(0)` would hide that the query itself returns nothing.
    const bare = expr.replace(' or vector(0)', '')
    const values = await until(() => prometheus.ask(bare, bare === expr ? at : 'any time'), hasData, 20_000)
    expect(values).toSatisfy(hasData)
  })
})

const certificateFile = (name: string) => join(checkout, 'test', 'service', 'tls', name)
const certificates = {
  SERVICE_CERT_FILE: certificateFile('cert.pem'),
  SERVICE_KEY_FILE: certificateFile('key.pem'),
  SERVICE_CA_FILE: certificateFile('cert.pem'),
}

const impatientRules = read('deploy/prometheus-rules.yaml').replaceAll(/^ +interval: .*\n/gm, '')

const configOf = (port: number) => ({
  global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
  rule_files: ['rules.yaml'],
  scrape_configs: [{ job_name: 'outboxd', static_configs: [{ targets: [`127.0.0.1:${port}`] }] }],
})

/** Causes all that the panels show: a pause, waiting records, records that need attention, a problem, an alert. */
async function haveABadMinute(harness: Harness, { ask }: Prometheus): Promise<void> {
  const { pool } = harness
  const seen = (...exprs: string[]) =>
    until(async () => (await Promise.all(exprs.map((expr) => ask(expr, 'now')))).every(hasData), Boolean)
  await seen('outboxd_rate_limit_capacity > 0') // counters that rise from now on show an increase

  // The service accepts one record and fails at its polls, and answers one with garbage. A third record does not map.
  await pool.query(`alter table outbox add constraint refuses check (status <> 'uncertain') not valid`)
  await harness.fault({ kind: 'answer', status: 500, body: 'broken', endpoint: 'status' })
  await harness.fault({ kind: 'answer', status: 200, body: 'garbage', endpoint: 'submit', bodyContains: 'garbage-' })
  await harness.insert('slow-')
  await harness.insert('garbage-')
  await harness.insert('wrong-', { customerId: 'longer than ten characters' })
  await until(
    () => pool.query(`select from outboxd.submission where state in ('accepted', 'uncertain', 'rejected')`),
    ({ rowCount }) => rowCount === 3,
  )
  await pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'for the picture')`)
  await harness.insert('waits-')
  await seen(
    'outboxd_paused == 1',
    'outboxd_problems > 0',
    ...['unsent', 'accepted', 'report_due'].map((which) => `outboxd_oldest_${which}_age_seconds > 0`),
  )

  await harness.control('DELETE', 'faults')
  await pool.query('delete from outboxd.pause')
  await harness.becomes('slow-', 'completed')
  await harness.becomes('waits-', 'completed')
  await seen('outboxd_submissions_finished_total{outcome="completed"} == 2')
}

interface Prometheus {
  /** @param at now, or at any time since the test began @returns all numbers of all its series */
  ask(expr: string, at: 'now' | 'any time'): Promise<string[]>
}

type Sample = [time: number, value: string]

function openPrometheus(url: string): Prometheus {
  const sinceS = Date.now() / 1000
  async function get<T>(path: string, parameters: Record<string, string | number>): Promise<T> {
    const search = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]))
    const answer = await fetch(`${url}/api/v1/${path}?${search}`)
    const { data, error } = (await answer.json()) as { data: T; error?: string }
    if (error !== undefined) throw new Error(`${search}: ${error}`)
    return data
  }
  return {
    async ask(expr, at) {
      const query = chosen(expr)
      if (at === 'now') {
        const { result } = await get<{ result: { value: Sample }[] }>('query', { query })
        return result.map(({ value }) => value[1])
      }
      const range = { query, start: sinceS, end: Date.now() / 1000, step: 0.5 }
      const { result } = await get<{ result: { values: Sample[] }[] }>('query_range', range)
      return result.flatMap(({ values }) => values.map((value) => value[1]))
    },
  }
}

/** NaN from a division by zero does not count as data. */
const hasData = (values: readonly string[]) => values.some((value) => Number.isFinite(Number(value)))

/** Replaces Grafana's variables by values. */
function chosen(query: string): string {
  const values = { job: 'outboxd', instance: '.*', __rate_interval: '10s', __range: '5m' }
  return query.replaceAll(/\$(\w+)/g, (_, name: keyof typeof values) => values[name])
}
