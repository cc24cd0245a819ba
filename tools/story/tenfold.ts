import { parse, stringify } from 'yaml'

/** The story is ten times as fast: a minute passes in six seconds. */
export const haste = 10

/** Converts a duration of the story to one at full length. */
export const toFullLengthMs = (ms: number) => ms * haste

const unitMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Divides a duration by ten, in the notation of Prometheus and Alertmanager. */
export function quickenDuration(duration: string): string {
  const [, number, unit = ''] = /^(\d+)(ms|s|m|h|d)$/.exec(duration) ?? []
  const ms = (Number(number) * (unitMs[unit] ?? Number.NaN)) / haste
  if (!Number.isInteger(ms)) throw new Error(`a tenth of ${duration} cannot be written`)
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`
}

/** Not made faster: it runs once a minute, a tenth of ten minutes, and no fault of the story concerns it. */
const slowLoop = 'compare'

/** Divides the windows of an expression by ten. Unquoted numbers of three digits or more are ages in seconds, and are divided, too. */
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

/** Divides every window, age and `for` of alert rules by ten. */
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

/** Divides the waits of an Alertmanager's configuration by ten, and sends each receiver's notifications to its path under `url`. */
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
