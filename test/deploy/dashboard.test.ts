import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { checkout } from '../support/program.ts'
import { unknownSelectors } from './unknownSelectors.ts'

/** test/e2e/dashboard.test.ts shows that the queries return data. */

interface Panel {
  id: number
  type: string
  collapsed?: boolean
  panels?: Panel[]
  gridPos: { x: number; y: number; w: number; h: number }
  links?: { url: string }[]
  targets?: { expr: string; legendFormat?: string }[]
}

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')
const dashboard = JSON.parse(read('deploy/grafana-dashboard.json'))
const all: Panel[] = dashboard.panels.flatMap((panel: Panel) => [panel, ...(panel.panels ?? [])])
const rows = all.filter(({ type }) => type === 'row')
const panels = all.filter(({ type }) => type !== 'row')
const variables: { name: string; type: string; query: string }[] = dashboard.templating.list
const links: { url: string }[] = [...dashboard.links, ...panels.flatMap(({ links = [] }) => links)]

test('there are at most 30 panels in four rows, and only the last row is collapsed', () => {
  expect(panels.length).toBeLessThanOrEqual(30)
  expect(rows.map(({ collapsed }) => collapsed)).toEqual([false, false, false, true])
})

test('each panel has its own id and its own place', () => {
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  const taken = new Set<string>()
  for (const { id, gridPos } of all) {
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([id, taken.has(`${x},${y}`)]).toEqual([id, false])
        taken.add(`${x},${y}`)
      }
    }
  }
})

/** A query for a variable as the same question in PromQL. */
const promql = (query: string) => query.replace(/^label_values\((.+), (\w+)\)$/, 'count by ($2) ($1)')
const queries = [
  ...panels.flatMap(({ targets = [] }) => targets),
  ...dashboard.annotations.list.map((marks: { expr: string; titleFormat: string }) => ({
    expr: marks.expr,
    legendFormat: marks.titleFormat,
  })),
  ...variables.filter(({ type }) => type === 'query').map(({ query }) => ({ expr: promql(query) })),
]

const labelsOf = new Map([['ALERTS', new Set(['job', 'alertname', 'alertstate', 'severity'])]])
const scrape = await createMetrics({ version: '1', clock: systemClock }).render()
for (const [, metric = '', labels = ''] of scrape.matchAll(/^(\w+)(?:\{(.*)\})? /gm)) {
  const names = [...labels.matchAll(/(\w+)="/g)].map(([, name = '']) => name)
  labelsOf.set(metric, new Set(['job', 'instance', ...names]))
}

test.each(queries)('$expr names only metrics, labels and values that exist', ({ expr, legendFormat = '' }) => {
  expect(unknownNames(expr, legendFormat)).toEqual([])
  expect(unknownSelectors(expr.replaceAll(/\b(job|instance)=~?"\$[^"]*",?/g, ''))).toEqual([])
})

test.each([...new Set(links.map(({ url }) => url))])('%s leads to a page and a heading that exist', (url) => {
  const [, page = '', anchor] = /^\$(docs\/[\w/]+\.md)(?:#(.+))?$/.exec(url) ?? []
  const headings = [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
  if (anchor) expect(headings.map((heading) => heading.toLowerCase().replaceAll(' ', '-'))).toContain(anchor)
})

test('the operator can say where the docs are', () => {
  expect(variables).toContainEqual(expect.objectContaining({ name: 'docs', type: 'textbox', query: 'docs' }))
})

/** The metrics that do not exist, and the labels that no metric of the query has. */
function unknownNames(expr: string, legend: string): string[] {
  const grouping = /\b(?:by|without|on|ignoring|group_left|group_right) \(([^)]*)\)/g
  const bare = expr.replaceAll(/"(?:\\.|[^"\\])*"/g, '""').replaceAll(/\[[^\]]*\]/g, '')
  const labels = [...bare.matchAll(grouping)].flatMap(([, names = '']) => names.split(', '))
  labels.push(...[...legend.matchAll(/{{(\w+)}}/g)].map(([, name = '']) => name))
  const known = new Set<string>()
  const unknown: string[] = []
  const selectors = bare.replaceAll(grouping, '').matchAll(/\b([a-zA-Z_]\w*)\b(?!\s*\()(?:\{([^}]*)\})?/g)
  for (const [, metric = '', matchers = ''] of selectors) {
    if (['and', 'or', 'unless'].includes(metric)) continue
    const own = labelsOf.get(metric)
    if (own === undefined) {
      unknown.push(metric)
      continue
    }
    for (const [, label = ''] of matchers.matchAll(/(\w+)[=!]/g)) if (!own.has(label)) unknown.push(label)
    for (const label of own) known.add(label)
  }
  return [...unknown, ...labels.filter((label) => !known.has(label))]
}
