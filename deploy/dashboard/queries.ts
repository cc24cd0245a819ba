import { bad, good, type Query, soon } from './panels.ts'

/** Of the whole installation: what every instance reads from the databases, and so shows alike. */
export const all = 'job="$job"'
/** Of the instances that were chosen: what each counts for itself. */
export const own = 'job="$job",instance=~"$instance"'
/** Whatever the time shown and the interval of the scrapes, wide enough for two samples. */
export const recent = '[$__rate_interval]'

export const theirFault = 'outcome=~"server_error|timeout|network|unavailable"'
/** Prometheus 3 writes `le="2.0"`; a connection that broke is no answer, neither slow nor quick. */
export const within2s = `le=~"2(\\\\.0)?",outcome!="network"`

/** Events of a minute, by a label. */
export const perMinute = (by: string, metric: string, labels: string): Query => ({
  expr: `sum by (${by}) (rate(${metric}{${labels}}${recent})) * 60`,
  legend: `{{${by}}}`,
})

/** Below this remain so many percent of what a histogram observed. */
export const below = (percent: number, metric: string, labels: string): Query => ({
  expr: `histogram_quantile(${percent / 100}, sum by (le) (rate(${metric}_bucket{${labels}}${recent})))`,
  legend: `${percent} %`,
})

/** The age of the oldest; 0 for none. An instance that has lost its database goes on with what it saw last: the least counts. */
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
