/** The kinds of panels, in Grafana's dashboard schema. layout.ts gives each its place. */

export interface Query {
  expr: string
  /** Name of the series; `{{label}}` inserts a label's value. */
  legend: string
}

/** A colour from this value on; null for the first step. */
export type Step = readonly [fromValue: number | null, color: string]

export interface Common {
  title: string
  /** Help text of the panel: its content, and which values are normal. */
  description: string
  /** In columns; a line has 24. */
  width: number
  /** The alert whose section of docs/run/runbook.md says what to do. */
  runbook?: string
  queries: readonly Query[]
  /** Grafana's name: `s`, `bytes`, `percentunit`, or `suffix: x`. */
  unit?: string
}

/** A panel without its place and its id. */
export type Panel = ReturnType<typeof panel>

export const good = 'green'
export const soon = 'orange'
export const bad = 'red'

const datasource = { type: 'prometheus', uid: '${datasource}' }

/** One number: the last value. */
export function stat(
  spec: Common & { steps: readonly Step[]; words?: Record<string, string>; none?: string; decimals?: number },
) {
  const { steps, words = {}, none, decimals } = spec
  return panel(spec, 'stat', 4, 'now', {
    defaults: {
      color: { mode: 'thresholds' },
      thresholds: thresholds(steps),
      mappings: mappings(words, steps),
      ...(none === undefined ? {} : { noValue: none }),
      ...(decimals === undefined ? {} : { decimals }),
    },
    options: {
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      colorMode: 'background',
      graphMode: 'none',
      justifyMode: 'center',
      orientation: 'auto',
      textMode: spec.queries.length > 1 || spec.queries[0]?.legend.includes('{{') ? 'value_and_name' : 'value',
    },
  })
}

/** Lines over time; stacked or as bars they show the sum. */
export function lines(
  spec: Common & {
    stacked?: boolean
    bars?: boolean
    /** Draws a red line at this value. */
    limit?: number
    colors?: Record<string, string>
  },
) {
  const { stacked = false, bars = false, limit, colors = {} } = spec
  return panel(spec, 'timeseries', 8, 'range', {
    defaults: {
      min: 0,
      color: { mode: 'palette-classic' },
      custom: {
        drawStyle: bars ? 'bars' : 'line',
        lineWidth: 1,
        fillOpacity: stacked || bars ? 50 : 0,
        showPoints: 'never',
        stacking: { mode: stacked || bars ? 'normal' : 'none', group: 'A' },
        // The scale reaches beyond the limit, so that its line is always in sight.
        ...(limit === undefined ? {} : { thresholdsStyle: { mode: 'line' }, axisSoftMax: limit * 1.2 }),
      },
      ...(limit === undefined
        ? {}
        : {
            thresholds: thresholds([
              [null, 'transparent'],
              [limit, bad],
            ]),
          }),
    },
    overrides: Object.entries(colors).map(([name, color]) => ({
      matcher: { id: 'byName', options: name },
      properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: color } }],
    })),
    options: {
      legend: { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  })
}

/** A bar over time for each series, coloured by its value. */
export function timeline(spec: Common & { words: Record<string, string>; steps: readonly Step[] }) {
  const { words, steps } = spec
  return panel(spec, 'state-timeline', 8, 'range', {
    defaults: {
      color: { mode: 'thresholds' },
      custom: { fillOpacity: 80, lineWidth: 0 },
      thresholds: thresholds(steps),
      mappings: mappings(words, steps),
    },
    options: {
      mergeValues: true,
      showValue: 'never',
      rowHeight: 0.8,
      alignValue: 'left',
      legend: { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] },
      tooltip: { mode: 'single', sort: 'none' },
    },
  })
}

/** A table row for each series: the labels `columns`, and its value if `valueIs` names that column. */
export function table(spec: Common & { columns: readonly string[]; valueIs?: string; none: string }) {
  const { columns, valueIs, none } = spec
  const names = [...columns, ...(valueIs === undefined ? [] : ['Value'])]
  return panel(spec, 'table', 8, 'table', {
    defaults: { noValue: none },
    options: { showHeader: true, cellHeight: 'sm' },
    transformations: [
      { id: 'filterFieldsByName', options: { include: { names } } },
      {
        id: 'organize',
        options: {
          indexByName: Object.fromEntries(names.map((name, i) => [name, i])),
          renameByName: valueIs === undefined ? {} : { Value: valueIs },
        },
      },
    ],
  })
}

interface Look {
  defaults: Record<string, unknown>
  overrides?: readonly object[]
  options: Record<string, unknown>
  transformations?: readonly object[]
}

/** @param ask one moment, the time shown, or one moment as a table */
function panel(spec: Common, type: string, height: number, ask: 'now' | 'range' | 'table', look: Look) {
  const { title, description, width, runbook, queries, unit } = spec
  return {
    type,
    title,
    description,
    width,
    height,
    datasource,
    links: runbook === undefined ? [] : [link('What to do', `docs/run/runbook.md#${runbook.toLowerCase()}`)],
    targets: queries.map(({ expr, legend }, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource,
      expr,
      legendFormat: legend,
      instant: ask !== 'range',
      range: ask === 'range',
      ...(ask === 'table' ? { format: 'table' } : {}),
    })),
    fieldConfig: {
      defaults: { ...(unit === undefined ? {} : { unit }), ...look.defaults },
      overrides: look.overrides ?? [],
    },
    options: look.options,
    ...(look.transformations === undefined ? {} : { transformations: look.transformations }),
  }
}

export function link(title: string, url: string) {
  return {
    type: 'link',
    title,
    url,
    icon: 'doc',
    tooltip: '',
    tags: [],
    targetBlank: true,
    asDropdown: false,
    includeVars: false,
    keepTime: false,
  }
}

function thresholds(steps: readonly Step[]) {
  return { mode: 'absolute', steps: steps.map(([value, color]) => ({ value, color })) }
}

/** Words for values, each in the colour of its value. */
function mappings(words: Record<string, string>, steps: readonly Step[]) {
  const colorOf = (value: number) => steps.findLast(([from]) => from === null || from <= value)?.[1]
  const options = Object.entries(words).map(([value, text]) => [value, { text, color: colorOf(Number(value)) }])
  return options.length === 0 ? [] : [{ type: 'value', options: Object.fromEntries(options) }]
}
