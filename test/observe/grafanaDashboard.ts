import { z } from 'zod'

/**
 * What a dashboard of ours may hold, in the names and values of Grafana's own dashboard schema (kinds/dashboard, version 39 of
 * it): a key or a value that it does not know is a mistake, which Grafana itself would pass over in silence.
 */

const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('${datasource}') })

const link = z.strictObject({
  type: z.literal('link'),
  title: z.string().min(1),
  url: z.string().min(1),
  icon: z.string(),
  tooltip: z.string(),
  tags: z.array(z.string()),
  targetBlank: z.boolean(),
  asDropdown: z.boolean(),
  includeVars: z.boolean(),
  keepTime: z.boolean(),
})

const color = z.enum([
  ...['green', 'orange', 'red', 'blue', 'yellow', 'purple', 'dark-red', 'dark-orange', 'text', 'transparent'],
] as const)

const thresholds = z.strictObject({
  mode: z.literal('absolute'),
  steps: z
    .array(z.strictObject({ value: z.number().nullable(), color }))
    .min(1)
    .refine(
      ([base, ...others]) => base?.value === null && others.every(({ value }) => value !== null),
      'the first step alone has no value',
    )
    .refine((steps) => steps.every(({ value }, i) => i < 2 || (value ?? 0) > (steps[i - 1]?.value ?? 0)), 'steps rise'),
})

const unit = z.union([z.enum(['s', 'bytes', 'percentunit']), z.string().regex(/^suffix:/)])

const fieldConfig = z.strictObject({
  defaults: z.strictObject({
    unit: unit.optional(),
    min: z.number().optional(),
    decimals: z.int().optional(),
    noValue: z.string().optional(),
    color: z.strictObject({ mode: z.enum(['thresholds', 'palette-classic']) }).optional(),
    thresholds: thresholds.optional(),
    mappings: z
      .array(
        z.strictObject({
          type: z.literal('value'),
          options: z.record(z.string(), z.strictObject({ text: z.string(), color })),
        }),
      )
      .optional(),
    custom: z
      .strictObject({
        drawStyle: z.enum(['line', 'bars']),
        lineWidth: z.int(),
        fillOpacity: z.int().min(0).max(100),
        showPoints: z.literal('never'),
        stacking: z.strictObject({ mode: z.enum(['none', 'normal']), group: z.string() }),
        thresholdsStyle: z.strictObject({ mode: z.literal('line') }),
        axisSoftMax: z.number(),
      })
      .partial()
      .optional(),
  }),
  overrides: z.array(
    z.strictObject({
      matcher: z.strictObject({ id: z.literal('byName'), options: z.string() }),
      properties: z.array(
        z.strictObject({
          id: z.literal('color'),
          value: z.strictObject({ mode: z.literal('fixed'), fixedColor: color }),
        }),
      ),
    }),
  ),
})

const target = z.strictObject({
  refId: z.string().regex(/^[A-Z]$/),
  datasource,
  expr: z.string().min(1),
  legendFormat: z.string(),
  instant: z.boolean(),
  range: z.boolean(),
  format: z.literal('table').optional(),
})

const gridPos = z
  .strictObject({ x: z.int().min(0), y: z.int().min(0), w: z.int().min(1), h: z.int().min(1) })
  .refine(({ x, w }) => x + w <= 24, 'a page has 24 columns')

const row = z.strictObject({
  id: z.int().min(1),
  type: z.literal('row'),
  title: z.string().min(1),
  collapsed: z.literal(false),
  panels: z.tuple([]),
  gridPos,
})

const panel = z.strictObject({
  id: z.int().min(1),
  type: z.enum(['stat', 'timeseries', 'state-timeline', 'table']),
  title: z.string().min(1),
  description: z.string().min(1),
  datasource,
  gridPos,
  links: z.array(link),
  targets: z.array(target).min(1),
  fieldConfig,
  options: z.record(z.string(), z.unknown()),
  transformations: z
    .array(
      z.strictObject({ id: z.enum(['filterFieldsByName', 'organize']), options: z.record(z.string(), z.unknown()) }),
    )
    .optional(),
})

const variable = z.strictObject({
  name: z.string(),
  label: z.string(),
  type: z.enum(['datasource', 'query']),
  datasource: datasource.optional(),
  query: z.string(),
  current: z.strictObject({ text: z.tuple([z.literal('All')]), value: z.tuple([z.literal('$__all')]) }).optional(),
  hide: z.literal(0),
  refresh: z.union([z.literal(1), z.literal(2)]),
  regex: z.literal(''),
  sort: z.literal(1).optional(),
  multi: z.boolean(),
  includeAll: z.boolean(),
  allValue: z.string().optional(),
  options: z.tuple([]),
})

const annotation = z.strictObject({
  name: z.string().min(1),
  datasource,
  enable: z.literal(true),
  hide: z.literal(false),
  iconColor: color,
  expr: z.string().min(1),
  step: z.string().regex(/^\d+s$/),
  titleFormat: z.string().min(1),
  textFormat: z.string(),
  tagKeys: z.string(),
  useValueForTime: z.literal(false),
})

export const grafanaDashboard = z.strictObject({
  uid: z.string().max(40),
  title: z.string().min(1),
  description: z.string(),
  tags: z.array(z.string()),
  schemaVersion: z.literal(39),
  version: z.literal(1),
  editable: z.boolean(),
  graphTooltip: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  timezone: z.enum(['browser', 'utc']),
  time: z.strictObject({ from: z.string().startsWith('now-'), to: z.literal('now') }),
  refresh: z.string().regex(/^\d+[smh]$/),
  timepicker: z.strictObject({}),
  links: z.array(link),
  templating: z.strictObject({ list: z.array(variable) }),
  annotations: z.strictObject({ list: z.array(annotation) }),
  panels: z.array(z.union([row, panel])),
})
