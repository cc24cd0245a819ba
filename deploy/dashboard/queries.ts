import { bad, good, type Query, soon } from './panels.ts'

/** For gauges that come from the database, the same on every instance. */
export const all = 'job="$job"'
/** For what each of the chosen instances counts itself. */
export const own = 'job="$job",instance=~"$instance"'
/** A range that has two samples, whatever the time shown and the scrape interval. */
export const recent = '[$__rate_interval]'

export const theirFault = 'outcome=~"server_error|timeout|network|unavailable"'
/** Prometheus 3 writes `le="2.0"`. A lost connection has no answer, so it is neither slow nor quick. */
export const within2s = `le=~"2(\\\\.0)?",outcome!="network"`

/** Events per minute, by a label. */
export const perMinute = (by: string, metric: string, labels: string): Query => ({
  expr: `sum by (${by}) (rate(${metric}{${labels}}${recent})) * 60`,
  legend: `{{${by}}}`,
})

/** The given percentile of a histogram. */
export const below = (percent: number, metric: string, labels: string): Query => ({
  expr: `histogram_quantile(${percent / 100}, sum by (le) (rate(${metric}_bucket{${labels}}${recent})))`,
  legend: `${percent} %`,
})

/** The age of the oldest; 0 if there is none. Takes the minimum, because the age grows on at an instance that has lost its database. */
export const oldest = (which: string) => `min(outboxd_oldest_${which}_age_seconds{${all}} > 0) or vector(0)`

export const endColors = { completed: good, failed: bad, rejected: soon, uncertain: 'purple', discarded: 'text' }
export const outcomeColors = {
  ok: good,
  rejected: 'yellow',
  unauthorized: 'purple',
  throttled: 'blue',
  unavailable: soon,
  server_error: bad,
  timeout: 'dark-red',
  network: 'dark-orange',
}
