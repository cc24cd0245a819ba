import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { startAlertmanager, startPrometheus } from '../../test/support/monitoring.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { checkout } from '../../test/support/program.ts'
import type { Fault } from './faults.ts'
import { isMeant, judge, nameOf, type Verdict } from './judge.ts'
import { type Notification, startTelephone } from './notifications.ts'
import { openSite, type Servers, type Site, type SiteOptions, startServer } from './site.ts'
import { haste, quickenRouting, quickenRules, toFullLengthMs } from './tenfold.ts'

export interface StoryOptions {
  faults: readonly Fault[]
  /** How long nothing is wrong, then how long each fault lasts, at full length. */
  healthyMinutes: number
  minutes: number
  /** Number of faults that run at a time. */
  atOnce: number
  say(text: string): void
  /** Aborting it ends the story with an error and stops everything that the story started. */
  signal: AbortSignal
}

/** A fault and its result. */
export interface Chapter {
  fault: Fault
  verdict: Verdict
  /** The first line of `outboxd status`. */
  status: string
  /** Alerts that fired without a notification, because they follow from others. */
  keptAway: string[]
}

/** A fault and its installation, while the story runs. */
interface Scenario {
  fault: Fault
  site: Site
  begunMs: number
  notifications: Notification[]
  status: Promise<string> | null
}

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')

/** Number of sites that start at a time, each with a daemon and a service. */
const startsAtOnce = 3

/**
 * Runs each fault in its own installation, under a Prometheus and an Alertmanager with our rules, at ten times the speed. Runs only
 * some faults at a time, because a busy machine slows everything down.
 */
export async function runStory(options: StoryOptions): Promise<Chapter[]> {
  await using stack = new AsyncDisposableStack()
  const servers = { shared: stack.use(await startServer()), still: stack.use(await startPostgres({ fsync: 'off' })) }
  const chapters: Chapter[] = []
  for (let i = 0; i < options.faults.length; i += options.atOnce)
    chapters.push(...(await runSome({ ...options, faults: options.faults.slice(i, i + options.atOnce) }, servers)))
  return chapters
}

async function runSome(options: StoryOptions, servers: Servers): Promise<Chapter[]> {
  const { say, signal } = options
  const minutes = (count: number) => after((count * 60_000) / haste, undefined, { signal })
  await using stack = new AsyncDisposableStack()
  const telephone = stack.use(await startTelephone())
  const alertmanager = stack.use(
    await startAlertmanager(quickenRouting(read('deploy/alertmanager.yaml'), telephone.url)),
  )
  const scenarios = await openAll(options, servers, stack)
  telephone.onNotification((notification) => hear(notification, scenarios, say))
  const prometheus = stack.use(await startPrometheus(prometheusConfig(scenarios, alertmanager.url), rulesFile()))
  say(`nothing is wrong for ${options.healthyMinutes} minutes`)
  await minutes(options.healthyMinutes)
  await Promise.all(scenarios.map((scenario) => begin(scenario, say)))
  await minutes(options.minutes)
  return await Promise.all(scenarios.map((scenario) => conclude(scenario, prometheus.url, options.minutes)))
}

async function openAll(
  { faults, say, signal }: StoryOptions,
  servers: Servers,
  stack: AsyncDisposableStack,
): Promise<Scenario[]> {
  const scenarios: Scenario[] = []
  const left = [...faults]
  async function openNext(): Promise<void> {
    for (let fault = left.shift(); fault !== undefined; fault = left.shift()) {
      signal.throwIfAborted()
      const site = stack.use(await openSite(servers, { ...usual, job: fault.name, ...fault.site }))
      say(`${fault.name}: its daemon runs`)
      scenarios.push({ fault, site, begunMs: Number.POSITIVE_INFINITY, notifications: [], status: null })
    }
  }
  await Promise.all(Array.from({ length: startsAtOnce }, openNext))
  return scenarios.toSorted((a, b) => faults.indexOf(a.fault) - faults.indexOf(b.fault))
}

const usual: Omit<SiteOptions, 'job'> = { ownServer: false, smallDisk: false, env: () => ({}) }

const rulesFile = () => ({ 'rules.yaml': quickenRules(read('deploy/prometheus-rules.yaml')) })

/** Checks every 15 s, at full length. */
function prometheusConfig(scenarios: readonly Scenario[], alertmanagerUrl: string): object {
  const every = `${15_000 / haste}ms`
  return {
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    rule_files: ['rules.yaml'],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [new URL(alertmanagerUrl).host] }] }] },
    scrape_configs: scenarios.map(({ site }) => ({
      job_name: site.job,
      static_configs: [{ targets: [`127.0.0.1:${site.port}`] }],
    })),
  }
}

async function begin(scenario: Scenario, say: (text: string) => void): Promise<void> {
  scenario.begunMs = performance.now()
  say(`${scenario.fault.name}: ${scenario.fault.what}`)
  await scenario.fault.begin(scenario.site)
}

/** Keeps the notifications of each site. Runs `status` when the expected alert comes. */
function hear(notification: Notification, scenarios: readonly Scenario[], say: (text: string) => void): void {
  const jobs = Map.groupBy(notification.alerts, ({ labels }) => labels.job)
  for (const [job, alerts] of jobs) {
    const scenario = scenarios.find(({ site }) => site.job === job)
    if (scenario === undefined) continue
    scenario.notifications.push({ ...notification, alerts })
    const ago = minutesOf(notification.atMs - scenario.begunMs)
    for (const alert of alerts)
      say(
        `${job}: after ${ago} min ${notification.receiver}: ${nameOf(alert)} ${alert.status}: ${alert.annotations.summary}`,
      )
    if (alerts.some((alert) => alert.status === 'firing' && isMeant(scenario.fault.alerts, nameOf(alert))))
      scenario.status ??= scenario.site.status()
  }
}

const minutesOf = (ms: number) => Math.round(toFullLengthMs(ms) / 6_000) / 10

async function conclude(
  { fault, site, begunMs, notifications, status: asked }: Scenario,
  prometheusUrl: string,
  minutes: number,
): Promise<Chapter> {
  const status = await (asked ?? site.status())
  const verdict = judge(fault, notifications, begunMs, status, sectionOf)
  const told = new Set([verdict.expected, ...verdict.others].map((each) => each?.name))
  const fired = await readFired(prometheusUrl, site.job, minutes)
  return { fault, verdict, status, keptAway: fired.filter((name) => !told.has(name)) }
}

/** Alerts of a job that fired, with or without a notification. */
async function readFired(prometheusUrl: string, job: string, minutes: number): Promise<string[]> {
  const window = `${Math.ceil((minutes * 60) / haste)}s`
  const query = `max_over_time(ALERTS{alertstate="firing",job="${job}"}[${window}])`
  const answer = await fetch(`${prometheusUrl}/api/v1/query?${new URLSearchParams({ query })}`)
  const { data } = (await answer.json()) as { data: { result: { metric: Record<string, string> }[] } }
  return [...new Set(data.result.map(({ metric }) => nameOf({ labels: { alertname: '', ...metric } })))]
}

/** Finds the section of the runbook that an alert points to. */
function sectionOf(url: string): string | null {
  const [path = '', anchor = ''] = url.split('#')
  const sections = path === '' ? [] : read(path).split(/^## /m)
  return sections.find((section) => section.split('\n')[0]?.toLowerCase() === anchor) ?? null
}
