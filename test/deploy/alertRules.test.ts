import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { problemKinds } from '../../src/model/problem.ts'
import { loopNames } from '../../src/observe/metricRows.ts'
import { unknownSelectors } from './unknownSelectors.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

interface Rule {
  alert?: string
  record?: string
  expr: string
  labels?: { severity?: string }
  annotations?: { summary?: string; description?: string; runbook_url?: string }
}

const groups: { rules: Rule[] }[] = parse(read('deploy/prometheus-rules.yaml')).groups
const rules = groups.flatMap((group) => group.rules)
const alerts = rules.filter(({ alert }) => alert)
const runbook = read('docs/run/runbook.md')

test('the rules were found', () => {
  expect(alerts.length).toBeGreaterThan(15)
})

describe.each(rules.map((rule) => [rule.alert ?? rule.record, rule] as const))('%s', (_name, rule) => {
  test('uses only metrics and label values that exist', () => {
    expect(unknownSelectors(rule.expr)).toEqual([])
  })

  test('uses only ratios that are recorded', () => {
    const recorded = rules.map(({ record }) => record)
    const asked = rule.expr.match(/\boutboxd:[\w:]+/g) ?? []
    expect(asked.filter((name) => !recorded.includes(name))).toEqual([])
  })
})

describe.each(alerts.map((rule) => [rule.alert, rule] as const))('%s', (name, { labels, annotations }) => {
  test('has a severity, a summary, a description and a section of the runbook', () => {
    expect(['page', 'ticket']).toContain(labels?.severity)
    expect(annotations?.summary).toMatch(/\w/)
    expect(annotations?.description).toMatch(/^\S.{40,}[.?]$/)
    expect(annotations?.runbook_url).toBe(`docs/run/runbook.md#${name?.toLowerCase()}`)
    expect(anchors(runbook)).toContain(name?.toLowerCase())
  })

  test('has a test of its own', () => {
    expect(read('deploy/prometheus-rules.test.yaml')).toContain(`alertname="${name}"`)
  })
})

test('each section of the runbook belongs to an alert', () => {
  const sections = anchors(runbook).filter((anchor) => anchor.startsWith('outboxd'))
  expect(sections.toSorted()).toEqual(alerts.map(({ alert }) => alert?.toLowerCase()).toSorted())
})

test('under OutboxdProblem the runbook names only kinds of problems that exist', () => {
  const section = runbook.split('\n## ').find((each) => each.startsWith('OutboxdProblem')) ?? ''
  const kinds = [...section.matchAll(/^ +- ([`\w, ]+): \S/gm)].flatMap(([, names]) => names?.match(/\w+/g) ?? [])
  expect(kinds).toContain('claim_lost')
  expect(problemKinds).toEqual(expect.arrayContaining(kinds))
})

test('under OutboxdLoopStalled the runbook has the effect of each loop that stands still', () => {
  const section = runbook.split('\n## ').find((each) => each.startsWith('OutboxdLoopStalled')) ?? ''
  const effects = section.slice(section.indexOf('If it stops,'))
  const names = [...effects.matchAll(/`(\w+)` [a-z]/g)].map(([, name]) => name)
  expect(names.toSorted()).toEqual(loopNames.toSorted())
})

test('the check itself finds a misspelt metric, label or value', () => {
  for (const wrong of [
    'outboxd_request_total',
    'outboxd_paused{cause="operator"}',
    'outboxd_paused{reason=~"operator|unauthorised"}',
    'outboxd_request_duration_seconds_bucket{le="2.1"}',
  ])
    expect(unknownSelectors(wrong)).toHaveLength(1)
})

test('each value in a summary is a share, a duration, or a count without decimals (5.058 answers were shown)', () => {
  const shown = alerts.flatMap(({ annotations }) => annotations?.summary?.match(/{{[^}]*\$value[^}]*}}/g) ?? [])
  expect(shown.length).toBeGreaterThan(10)
  for (const value of shown) expect(value).toMatch(/\| (humanizePercentage|humanizeDuration|printf "%\.0f") }}$/)
})

describe.skipIf(spawnSync('promtool', ['--version']).error)('promtool runs the rules’ own tests', () => {
  test.each(['prometheus-rules.test.yaml', 'prometheus-rules.outages.test.yaml'])('%s', (file) => {
    const run = spawnSync('promtool', ['test', 'rules', file], { cwd: new URL('deploy/', root), encoding: 'utf8' })
    expect(run.stdout + run.stderr).toContain('SUCCESS')
    expect(run.status).toBe(0)
  })
})

function anchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.toLowerCase().replaceAll(' ', '-'))
}
