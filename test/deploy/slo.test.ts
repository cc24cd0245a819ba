import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { unknownSelectors } from './unknownSelectors.ts'

const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'docs', 'run', 'slo.md'), 'utf8')
const onPage = [...page.matchAll(/```promql\n([\s\S]*?)```/g)].map(([, query = '']) => query.trim())
/** The page's formula for what is left of the allowance of one of the two shares. */
const left = page.match(/`(\(share .*)`/)?.[1] ?? ''
const queries = [...onPage.slice(0, 2).map((share) => left.replace('share', `(${share})`)), ...onPage]

test('the page’s queries use only metrics, labels and values that exist', () => {
  expect(onPage).toHaveLength(3)
  expect(left).toBe('(share - 0.99) / 0.01')
  expect(queries.flatMap(unknownSelectors)).toEqual([])
})

/** 30 days in which one of a thousand requests failed and two answers took longer than 2 s; half the time a pause. */
const series = {
  'outboxd_requests_total{job="outboxd",endpoint="submit",outcome="ok"}': '0+999x720',
  'outboxd_requests_total{job="outboxd",endpoint="submit",outcome="rejected"}': '0+0x720',
  'outboxd_requests_total{job="outboxd",endpoint="submit",outcome="server_error"}': '0+1x720',
  'outboxd_request_duration_seconds_count{job="outboxd",endpoint="submit",outcome="ok"}': '0+1000x720',
  'outboxd_request_duration_seconds_count{job="outboxd",endpoint="submit",outcome="network"}': '0+50x720',
  'outboxd_request_duration_seconds_bucket{job="outboxd",endpoint="submit",outcome="ok",le="2"}': '0+998x720',
  'outboxd_request_duration_seconds_bucket{job="outboxd",endpoint="submit",outcome="network",le="2"}': '0+0x720',
  'outboxd_paused{job="outboxd",reason="unreachable"}': '1x359 0x360',
  'outboxd_paused{job="outboxd",reason="operator"}': '0x720',
}

const job = '{job="outboxd"}'
/**
 * What is left of the two allowances, then the page's queries in their order. Values are rounded to thousandths. The
 * pause's share is rounded to hundredths, because its end is a sample more or less.
 */
const expected = [
  [{ labels: job, value: 0.9 }],
  [{ labels: job, value: 0.8 }],
  [{ labels: job, value: 0.999 }],
  [{ labels: job, value: 0.998 }],
  [{ labels: '{job="outboxd", reason="unreachable"}', value: 0.5 }],
]

test.skipIf(spawnSync('promtool', ['--version']).error)(
  'the page’s queries return in promtool what the page says',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'outboxd-slo-'))
    const tests = {
      evaluation_interval: '24h',
      tests: [
        {
          interval: '1h',
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          promql_expr_test: queries.map((query, i) => ({
            expr: `round(${query}, ${i === queries.length - 1 ? 0.01 : 0.001})`,
            eval_time: '720h',
            exp_samples: expected[i],
          })),
        },
      ],
    }
    writeFileSync(join(folder, 'tests.yaml'), stringify(tests))
    const run = spawnSync('promtool', ['test', 'rules', 'tests.yaml'], { cwd: folder, encoding: 'utf8' })
    expect(run.stdout + run.stderr).toContain('SUCCESS')
    expect(run.status).toBe(0)
  },
)
