import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { quickenDuration, quickenExpression, quickenRouting, quickenRules } from '../../../tools/story/tenfold.ts'
import { has } from '../../support/monitoring.ts'
import { checkout } from '../../support/program.ts'

const read = (path: string) => readFileSync(join(checkout, 'deploy', path), 'utf8')

test.each([
  ['5m', '30s'],
  ['15s', '1500ms'],
  ['3d', '25920s'],
])('a tenth of %s is %s', (whole, tenth) => {
  expect(quickenDuration(whole)).toBe(tenth)
})

test.each([
  ['increase(a[5m]) > 14.4 * 0.01', 'increase(a[30s]) > 14.4 * 0.01'],
  ['(time() - b > 3600) unless c{le="3600"} == 1', '(time() - b > 360) unless c{le="3600"} == 1'],
  ['(min(d > 0) - time()) < 14 * 86400', '(min(d > 0) - time()) < 14 * 8640'],
  ['sum(increase(e[15m])) >= 10', 'sum(increase(e[90s])) >= 10'],
  ['f and f offset 90s', 'f and f offset 9s'],
  [
    'max by (loop) (outboxd_loop_last_success_age_seconds) > 600',
    'max by (loop) (outboxd_loop_last_success_age_seconds{loop!="compare"}) > 60',
  ],
])('%s becomes %s', (whole, tenth) => {
  expect(quickenExpression(whole)).toBe(tenth)
})

test('in our rules, an expression has a number of three or more digits if and only if it compares an age', () => {
  const { groups } = parse(read('prometheus-rules.yaml')) as { groups: { rules: { expr: string }[] }[] }
  for (const { expr } of groups.flatMap(({ rules }) => rules)) {
    const hasAge = /time\(\)|_age_seconds/.test(expr.replaceAll('< time()', ''))
    expect({ expr, changed: /(?<!\w)\d{3,}(?!\w)/.test(expr.replaceAll(/"[^"]*"/g, '')) }).toEqual({
      expr,
      changed: hasAge,
    })
  }
})

test('every duration of a rule becomes a tenth', () => {
  const durations = (text: string) => [...text.matchAll(/\b(for|keep_firing_for|interval): (\w+)/g)].map(([, , d]) => d)
  const [whole, tenth] = [
    durations(read('prometheus-rules.yaml')),
    durations(quickenRules(read('prometheus-rules.yaml'))),
  ]
  expect(tenth).toEqual(whole.map((duration = '') => quickenDuration(duration)))
  expect(quickenRules(read('prometheus-rules.yaml'))).toContain('keep_firing_for: 30s')
})

test.skipIf(!has('promtool'))('promtool accepts the quickened rules', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'tenfold-')), 'rules.yaml')
  writeFileSync(file, quickenRules(read('prometheus-rules.yaml')))
  expect(spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' }).stdout).toContain('SUCCESS')
})

describe('the routing', () => {
  const routing = quickenRouting(read('alertmanager.yaml'), 'http://127.0.0.1:1') as ReturnType<typeof parse>

  test('goes to the same receivers, which are webhooks', () => {
    expect(routing.receivers.map(({ name }: { name: string }) => name)).toEqual(['on-call', 'tickets'])
    expect(routing.receivers[0].webhook_configs[0].url).toBe('http://127.0.0.1:1/on-call')
  })

  test('waits a tenth as long, and inhibits the same alerts', () => {
    const whole = parse(read('alertmanager.yaml'))
    expect(routing.route.routes[0].routes[0]).toMatchObject({ group_wait: '3s', group_interval: '30s' })
    expect(routing.inhibit_rules).toEqual(whole.inhibit_rules)
  })
})
