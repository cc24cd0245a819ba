import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { dashboard } from '../../deploy/dashboard/dashboard.ts'
import { layOut } from '../../deploy/dashboard/layout.ts'
import { lines } from '../../deploy/dashboard/panels.ts'
import { systemClock } from '../../src/clock.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { grafanaDashboard } from './grafanaDashboard.ts'
import { unknownSelectors } from './unknownSelectors.ts'

/** test/e2e/dashboard.test.ts shows that the queries return data. */

const root = join(import.meta.dirname, '..', '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { panels, annotations, templating, links } = grafanaDashboard.parse(JSON.parse(JSON.stringify(dashboard)))
const drawing = panels.filter((panel) => panel.type !== 'row')
const queries = [
  ...drawing.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...annotations.list.map(({ expr }) => expr),
  ...templating.list.map(({ query }) => query),
].map(withoutChoices)

test('deploy/grafana-dashboard.json is current (npm test -- test/observe/dashboard -u writes it)', async () => {
  await expect(`${JSON.stringify(dashboard, null, 2)}\n`).toMatchFileSnapshot('../../deploy/grafana-dashboard.json')
})

test('the dashboard has the rows that an operator looks for, beginning with “Now”', () => {
  expect(panels.flatMap((panel) => (panel.type === 'row' ? [panel.title] : []))).toEqual([
    'Now',
    'The service against its two targets',
    'The request budget',
    'The way of the records',
    'Needs attention',
    'The daemon itself',
  ])
  expect(drawing.length).toBeGreaterThan(30)
})

test('each panel has its own id and place', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
})

test('a line that is wider than the page is an error', () => {
  const panel = lines({ title: 'a', description: 'b', width: 13, queries: [] })
  expect(() => layOut([{ title: 'Now', lines: [[panel, panel]] }])).toThrow('Now: a line is 26 columns wide')
})

test('each panel has a description, and its own title', () => {
  for (const { title, description } of drawing)
    expect([title, description]).toEqual([title, expect.stringMatching(/^\S.{9,}\.$/)])
  expect(new Set(drawing.map(({ title }) => title)).size).toBe(drawing.length)
})

test('latency panels always show a line at the target of 2 s', () => {
  const latencies = drawing.filter(({ targets }) =>
    targets.some(({ expr }) => /quantile.*outboxd_request_duration_seconds/.test(expr)),
  )
  expect(latencies).toHaveLength(2)
  for (const { fieldConfig } of latencies) {
    expect(fieldConfig.defaults.thresholds?.steps.at(-1)).toEqual({ value: 2, color: 'red' })
    expect(fieldConfig.defaults.custom).toMatchObject({ thresholdsStyle: { mode: 'line' }, axisSoftMax: 2.4 })
  }
})

test('the queries use only metrics, labels and values that exist', async () => {
  expect(queries.flatMap(unknownSelectors)).toEqual([])
  const scraped = (await metricNames()).map(([name]) => name)
  const others = queries.flatMap((query) => query.match(/\b(process|nodejs)_\w+/g) ?? [])
  expect(others.filter((name) => !scraped.includes(name))).toEqual([])
  const recorded: string[] = parse(read('deploy/prometheus-rules.yaml')).groups.flatMap(
    (group: { rules: { record?: string }[] }) => group.rules.flatMap(({ record }) => record ?? []),
  )
  const asked = queries.flatMap((query) => query.match(/\boutboxd:[\w:]+/g) ?? [])
  expect(asked.length).toBeGreaterThan(3)
  expect(asked.filter((name) => !recorded.includes(name))).toEqual([])
})

test('all queries select the chosen installation, and all rates the matching interval', () => {
  const exprs = [...drawing.flatMap(({ targets }) => targets), ...annotations.list].map(({ expr }) => expr)
  for (const expr of exprs) {
    for (const [selector] of expr.matchAll(/\b(?:outboxd[\w:]+|process_\w+|nodejs_\w+|ALERTS)\b(?:\{[^}]*\})?/g))
      expect(selector).toMatch(/job=~?"\$job/)
    for (const [, range] of expr.matchAll(/\[([^\]]+)\]/g)) expect(['$__rate_interval', '$__range']).toContain(range)
  }
})

/** Every metric is drawn but these. */
const leftOut = {
  outboxd_oldest_unsent_timestamp_seconds: 'its age is drawn',
  outboxd_oldest_accepted_timestamp_seconds: 'its age is drawn',
  outboxd_oldest_for_person_timestamp_seconds: 'its age is drawn',
  outboxd_oldest_report_due_timestamp_seconds: 'its age is drawn',
  outboxd_loop_last_success_timestamp_seconds: 'its age is drawn',
}

test('every metric of ours is drawn, or left out on purpose', async () => {
  const drawn = (name: string) => queries.some((query) => new RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(query))
  const ours = (await metricNames()).map(([name]) => name).filter((name) => name.startsWith('outboxd_'))
  expect(ours.filter((name) => !drawn(name)).toSorted()).toEqual(Object.keys(leftOut).toSorted())
})

test('counters are drawn as rates, gauges as they are', async () => {
  const rates = queries.flatMap((query) => [...query.matchAll(/\b(?:rate|increase)\((\w+)/g)].map(([, name]) => name))
  const plain = (name: string) =>
    queries.filter((query) => new RegExp(`(?<!\\b(?:rate|increase)\\()\\b${name}\\b`).test(query))
  for (const [name, type] of await metricNames()) {
    if (type === 'counter') expect([name, plain(name)]).toEqual([name, []])
    if (type === 'gauge') expect(rates).not.toContain(name)
  }
})

describe('the link', () => {
  const urls = [...links, ...drawing.flatMap((panel) => panel.links)].map(({ url }) => url)

  test.each([...new Set(urls)])('%s leads to a page and a heading that exist', (url) => {
    expect(url).toMatch(/^docs\//) // what docs/start/install.md puts the address of a copy in front of
    const [path = '', anchor] = url.split('#')
    const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading.toLowerCase().replaceAll(' ', '-'),
    )
    if (anchor !== undefined) expect(headings).toContain(anchor)
  })
})

/** Returns the query for all instances of all installations. */
function withoutChoices(query: string): string {
  return query.replaceAll(/\b(job|instance)=~?"\$[^"]*",?/g, '')
}

async function metricNames(): Promise<[name: string, type: string][]> {
  const text = await createMetrics({ version: '1', clock: systemClock }).render()
  return [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type])
}
