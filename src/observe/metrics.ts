import { Counter, collectDefaultMetrics, Gauge, type GaugeConfiguration, Histogram, Registry } from 'prom-client'
import type { Clock } from '../clock.ts'
import { deriveAgeMetric, type LabelValues, type MetricRow, type MetricsSnapshot, metricRows } from './metricRows.ts'

type Rows = typeof metricRows

/** If a label lists `other`, any text is allowed. */
type Labels<Values> = {
  [Label in keyof Values]: Values[Label] extends readonly (infer Value)[]
    ? 'other' extends Value
      ? string
      : Value
    : never
}

type LabelsOf<Row> = Row extends { labels: infer Values } ? [labels: Labels<Values>] : []

type Handle<Row> = Row extends { kind: 'counter' }
  ? { add(by: number, ...labels: LabelsOf<Row>): void }
  : Row extends { kind: 'histogram' }
    ? { observe(value: number | null, ...labels: LabelsOf<Row>): void }
    : Row extends { kind: 'own gauge' | 'gauge' }
      ? { set(value: number | null, ...labels: LabelsOf<Row>): void }
      : Row extends { kind: 'stopwatch' }
        ? { restart(...labels: LabelsOf<Row>): void }
        : never

/** No method throws. Numbers that are not finite are dropped, negative ones count as 0, and null sets a gauge to 0. */
export type Metrics = {
  readonly [Name in keyof Rows as Handle<Rows[Name]> extends never ? never : Name]: Handle<Rows[Name]>
} & {
  setSnapshot(snapshot: MetricsSnapshot): void
  /** Adds `types`, the record types, as label values. */
  mappingsLoaded(types: Iterable<string>): void
  render(): Promise<string>
}

interface MetricsOptions {
  version: string
  /** A label of each metric, so that alerts name the installation; '' if it has no name. */
  installation?: string
  clock: Pick<Clock, 'stopwatch'>
}

export function createMetrics({ version, installation = '', clock }: MetricsOptions): Metrics {
  const registry = new Registry()
  if (installation !== '') registry.setDefaultLabels({ installation })
  const rows = Object.entries<MetricRow>(metricRows)
  const instruments = Object.fromEntries(rows.map(([name, row]) => [name, createInstrument(row, registry, clock)]))
  const metrics = instruments as unknown as Metrics
  addDefaults(registry, version)
  return {
    ...metrics,
    setSnapshot(snapshot) {
      for (const instrument of Object.values(instruments)) instrument.show?.(snapshot)
    },
    mappingsLoaded(types) {
      instruments.finishedByType?.addValues?.('type', types)
    },
    render: () => registry.metrics(),
  }
}

type Given = Record<string, string>

interface Instrument {
  add?(by: number, labels?: Given): void
  set?(value: number | null, labels?: Given): void
  observe?(value: number | null, labels?: Given): void
  restart?(labels?: Given): void
  show?(snapshot: MetricsSnapshot): void
  addValues?(label: string, values: Iterable<string>): void
}

function createInstrument(row: MetricRow, registry: Registry, clock: Pick<Clock, 'stopwatch'>): Instrument {
  const known = new Map(Object.entries(row.labels ?? {}).map(([label, values]) => [label, new Set(values)]))
  const config = { name: row.name, help: row.help, labelNames: [...known.keys()], registers: [registry] }
  const all = combinations(row.labels ?? {})
  const perUnit = row.name.endsWith('_seconds') ? 1_000 : 1
  const listed = (given: Given = {}): Given =>
    Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, known.get(name)?.has(value) ? value : 'other']),
    )
  const ifFinite = (value: number | null | undefined, use: (inUnits: number) => void) => {
    if (typeof value === 'number' && Number.isFinite(value)) use(Math.max(0, value) / perUnit)
  }

  switch (row.kind) {
    case 'counter': {
      const counter = new Counter(config)
      for (const labels of all) counter.inc(labels, 0)
      return {
        add: (by, given) => ifFinite(by, (amount) => counter.inc(listed(given), amount)),
        addValues(label, values) {
          for (const value of values) {
            known.get(label)?.add(value)
            for (const labels of combinations({ ...row.labels, [label]: [value] })) counter.inc(labels, 0)
          }
        },
      }
    }
    case 'histogram': {
      const histogram = new Histogram({ ...config, buckets: [...row.buckets] })
      for (const labels of all) histogram.zero(labels)
      return { observe: (value, given) => ifFinite(value, (amount) => histogram.observe(listed(given), amount)) }
    }
    case 'own gauge':
    case 'gauge':
    case 'shown': {
      const gauge = new Gauge(config)
      for (const labels of all) gauge.set(labels, 0)
      const set = (value: number | null | undefined, given?: Given) =>
        ifFinite(value ?? 0, (amount) => gauge.set(listed(given), amount))
      if (row.kind !== 'shown') return { set }
      return {
        show(snapshot) {
          const value = row.of(snapshot)
          const isOne = typeof value !== 'object' || value === null
          for (const labels of all) set(isOne ? value : value[Object.values(labels)[0] ?? ''], labels)
        },
      }
    }
    case 'moment': {
      const gauge = new Gauge(config)
      gauge.set(0)
      let ageMs = () => 0
      growingGauge({ ...config, ...deriveAgeMetric(row) }, () => [[{}, Math.max(0, ageMs()) / perUnit]])
      return {
        show(snapshot) {
          const fromMs = row.of(snapshot)
          ifFinite(fromMs ?? 0, (seconds) => gauge.set(seconds))
          const sinceReadMs = clock.stopwatch()
          ageMs = () => (fromMs === null ? 0 : snapshot.nowMs - fromMs + sinceReadMs())
        },
      }
    }
    case 'stopwatch': {
      const started = clock.stopwatch()
      const restarted = new Map<string, () => number>()
      const sinceMs = (labels: Given) => (restarted.get(JSON.stringify(labels)) ?? started)()
      growingGauge(config, () => all.map((labels) => [labels, sinceMs(labels) / perUnit]))
      return { restart: (given) => void restarted.set(JSON.stringify(listed(given)), clock.stopwatch()) }
    }
    default:
      return row satisfies never
  }
}

function growingGauge(config: GaugeConfiguration<string>, read: () => readonly (readonly [Given, number])[]): void {
  new Gauge({
    ...config,
    collect() {
      for (const [labels, value] of read()) this.set(labels, value)
    },
  })
}

function combinations(labels: LabelValues): Given[] {
  return Object.entries(labels).reduce<Given[]>(
    (before, [label, values]) => before.flatMap((given) => values.map((value) => ({ ...given, [label]: value }))),
    [{}],
  )
}

/** prom-client's default of 10 ms would take a third of an idle daemon's CPU. */
const tickMs = 100

/** Leaves out three gauges whose names look like counters (`promtool check metrics`). */
function addDefaults(registry: Registry, version: string): void {
  const help = 'Always 1; the label says which version runs.'
  new Gauge({ name: 'outboxd_build_info', help, labelNames: ['version'], registers: [registry] }).set({ version }, 1)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: tickMs })
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
}
