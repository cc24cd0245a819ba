import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { has, startAlertmanager } from '../support/monitoring.ts'
import { checkout } from '../support/program.ts'
import { until } from '../support/until.ts'
import { temporaryFolder } from './files.ts'

interface InhibitRule {
  source_matchers: string[]
  target_matchers: string[]
  equal: string[]
}

interface Alert {
  alert: string
  labels: { severity: string }
}

const file = join(checkout, 'deploy', 'alertmanager.yaml')
const read = (path: string) => readFileSync(join(checkout, path), 'utf8')
const config = parse(read('deploy/alertmanager.yaml'))
const inhibitRules: InhibitRule[] = config.inhibit_rules
const alerts: Alert[] = parse(read('deploy/prometheus-rules.yaml'))
  .groups.flatMap(({ rules }: { rules: Partial<Alert>[] }) => rules)
  .filter(({ alert }: Partial<Alert>) => alert)

/** Returns the alerts that a list of matchers names. */
function named(matchers: readonly string[]): Alert[] {
  const pattern = matchers.map((each) => /^alertname=~?"(.+)"$/.exec(each)?.[1]).find((each) => each !== undefined)
  return alerts.filter(({ alert }) => new RegExp(`^(?:${pattern})$`).test(alert))
}

describe.each(inhibitRules)('while $source_matchers fires', ({ source_matchers, target_matchers, equal }) => {
  test('only existing alerts of the same job are inhibited', () => {
    for (const matchers of [source_matchers, target_matchers]) {
      const names = /"(.+)"/.exec(matchers[0] ?? '')?.[1] ?? ''
      const alternatives = names.includes('(') ? names.slice(names.indexOf('(') + 1, -1).split('|') : names.split('|')
      expect(named(matchers)).toHaveLength(alternatives.length)
    }
    expect(equal).toContain('job')
  })

  test('a ticket inhibits no page', () => {
    const isPage = ({ labels }: Alert) => labels.severity === 'page'
    if (!named(source_matchers).every(isPage)) expect(named(target_matchers).filter(isPage)).toEqual([])
  })
})

test('no two alerts inhibit each other, because neither would be sent', () => {
  const pairs = inhibitRules.flatMap(({ source_matchers, target_matchers }) =>
    named(source_matchers).flatMap((source) => named(target_matchers).map((target) => [source.alert, target.alert])),
  )
  const kept = new Set(pairs.map(([source, target]) => `${source} ${target}`))
  expect(pairs.filter(([source, target]) => kept.has(`${target} ${source}`) && source !== target)).toEqual([])
})

test('the file contains no secret', () => {
  const secrets = /(password|routing_key|service_key|api_url|credentials|token)$/
  const keys = [...read('deploy/alertmanager.yaml').matchAll(/^[\s-]*(\w+):/gm)].map(([, key = '']) => key)
  expect(keys.filter((key) => secrets.test(key))).toEqual([])
})

describe.skipIf(!has('amtool'))('amtool, of Debian’s prometheus-alertmanager', () => {
  test('accepts the file', () => {
    const run = spawnSync('amtool', ['check-config', file], { encoding: 'utf8' })
    expect(run.stdout + run.stderr).toContain('SUCCESS')
    expect(run.status).toBe(0)
  })

  test('accepts the file with its lines for Slack in place of those for mail', () => {
    const changed = join(temporaryFolder(), 'alertmanager.yaml')
    const withSlack = read('deploy/alertmanager.yaml')
      .replace(/^ {4}email_configs:\n(?: {6}.*\n)+/m, '')
      .replaceAll(/^ {4}# /gm, '    ')
    expect(withSlack).toMatch(/^ {4}slack_configs:$/m)
    writeFileSync(changed, withSlack)
    const run = spawnSync('amtool', ['check-config', changed], { encoding: 'utf8' })
    expect(run.stdout + run.stderr).toContain('SUCCESS')
  })

  test.each(alerts.map(({ alert, labels }) => [alert, labels.severity]))('sends %s, a %s, to its receiver', (...of) => {
    const [alert, severity] = of
    const labels = [`alertname=${alert}`, `severity=${severity}`, 'job=erp']
    const run = spawnSync('amtool', ['config', 'routes', 'test', `--config.file=${file}`, ...labels], {
      encoding: 'utf8',
    })
    expect(run.stdout.trim()).toBe(severity === 'page' ? 'on-call' : 'tickets')
  })
})

test.skipIf(!has('prometheus-alertmanager'))(
  'a running Alertmanager sends the cause without its consequences, separately for each job',
  async () => {
    await using alertmanager = await startAlertmanager(config)
    const fire = [
      { alertname: 'OutboxdPaused', job: 'away', severity: 'page', reason: 'unreachable' },
      { alertname: 'OutboxdBehind', job: 'away', severity: 'ticket' },
      { alertname: 'OutboxdUncertain', job: 'away', severity: 'ticket' },
      { alertname: 'OutboxdBehind', job: 'busy', severity: 'ticket' },
      { alertname: 'OutboxdProblem', job: 'files', severity: 'ticket', kind: 'row_skipped' },
      { alertname: 'OutboxdAbsent', job: 'gone', severity: 'page' },
      { alertname: 'OutboxdDown', job: 'gone', severity: 'ticket' },
    ]
    await fetch(`${alertmanager.url}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fire.map((labels) => ({ labels }))),
    })
    const told = async () => {
      const answer = await fetch(`${alertmanager.url}/api/v2/alerts?inhibited=false`)
      const seen = (await answer.json()) as { labels: { alertname: string; job: string } }[]
      return seen.map(({ labels }) => `${labels.job}: ${labels.alertname}`).toSorted()
    }
    await until(told, (seen) => seen.length > 0)
    expect(await told()).toEqual([
      'away: OutboxdPaused',
      'away: OutboxdUncertain',
      'busy: OutboxdBehind',
      'files: OutboxdProblem',
      'gone: OutboxdAbsent',
    ])
  },
)
