import { parse, stringify } from 'yaml'

/** A minute of a long night passes in six seconds: ten times as quick. */
export const haste = 10

/** How long what took so long, in milliseconds, would have taken in a night of full length. */
export const atFullLengthMs = (ms: number) => ms * haste

const unitMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration as Prometheus and Alertmanager write it, a tenth of it. */
export function quickenDuration(duration: string): string {
  const [, number, unit = ''] = /^(\d+)(ms|s|m|h|d)$/.exec(duration) ?? []
  const ms = (Number(number) * (unitMs[unit] ?? Number.NaN)) / haste
  if (!Number.isInteger(ms)) throw new Error(`a tenth of ${duration} cannot be written`)
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`
}

/** It comes round once a minute, which is a tenth of ten minutes, and looks for what no fault of the story does. */
const slowLoop = 'compare'

/** An expression with each window a tenth; a number of three digits or more outside of quotes is an age in seconds. */
export function quickenExpression(expr: string): string {
  return expr
    .replaceAll('outboxd_loop_last_success_age_seconds', `$&{loop!="${slowLoop}"}`)
    .split(/("[^"]*")/)
    .map((part) =>
      part.startsWith('"')
        ? part
        : part
            .replaceAll(/\[(\w+)\]/g, (_, window: string) => `[${quickenDuration(window)}]`)
            .replaceAll(/\boffset (\w+)/g, (_, ago: string) => `offset ${quickenDuration(ago)}`)
            .replaceAll(/(?<![\w.[])\d{3,}(?![\w.\]])/g, (age) => String(Number(age) / haste)),
    )
    .join('')
}

interface Rule {
  expr: string
  for?: string
  keep_firing_for?: string
}

/** Alert rules, as YAML, with every window, age and `for` a tenth. */
export function quickenRules(text: string): string {
  const { groups } = parse(text) as { groups: { interval?: string; rules: Rule[] }[] }
  for (const group of groups) {
    if (group.interval) group.interval = quickenDuration(group.interval)
    for (const rule of group.rules) {
      rule.expr = quickenExpression(rule.expr)
      for (const name of ['for', 'keep_firing_for'] as const) if (rule[name]) rule[name] = quickenDuration(rule[name])
    }
  }
  return stringify({ groups })
}

/** An Alertmanager's configuration with each wait a tenth, whose receivers are told at `url`, each at a path of its name. */
export function quickenRouting(text: string, url: string): object {
  const { receivers, route, inhibit_rules } = parse(text) as {
    receivers: { name: string }[]
    route: Route
    inhibit_rules: unknown
  }
  const told = (name: string) => ({ name, webhook_configs: [{ url: `${url}/${name}`, send_resolved: true }] })
  return { receivers: receivers.map(({ name }) => told(name)), route: quickenRoute(route), inhibit_rules }
}

interface Route {
  routes?: Route[]
  [key: string]: unknown
}

function quickenRoute({ routes = [], ...route }: Route): Route {
  const waits = ['group_wait', 'group_interval', 'repeat_interval'].flatMap((name) =>
    typeof route[name] === 'string' ? [[name, quickenDuration(route[name])]] : [],
  )
  return { ...route, ...Object.fromEntries(waits), routes: routes.map(quickenRoute) }
}
