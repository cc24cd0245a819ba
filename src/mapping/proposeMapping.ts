import { type Resource, resourceNames, serviceResources } from '../resources.ts'
import { quoteYaml, type YamlLine } from '../yaml/yamlLines.ts'
import type { SourceField } from './sourceFields.ts'
import { chooseByUsualName, normalizeName, rankByUsualName, type UsualNameKind } from './usualNames.ts'

export interface MappingProposal {
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

/** A field of the service (docs/reference/interface.md, 2.5 and 2.6). */
interface Target {
  readonly name: string
  readonly rest: string
  readonly usual: UsualNameKind
  readonly kinds: readonly SourceField['kind'][]
  readonly what: string
}

const dataTargets: readonly Target[] = [
  {
    name: 'customer_id',
    rest: 'type: string, maxLength: 10, required: true',
    usual: 'customer',
    kinds: ['text', 'number', 'uuid'],
    what: 'the customer: 10 characters at most',
  },
  {
    name: 'order_date',
    rest: 'type: datetime, required: true',
    usual: 'orderDate',
    kinds: ['time', 'localTime', 'text'],
    what: 'the date of the order: ISO 8601 with an offset, or say timezone: Europe/Berlin',
  },
  {
    name: 'total_amount',
    rest: 'type: "decimal(10,2)", required: true',
    usual: 'amount',
    kinds: ['number', 'double', 'money', 'text'],
    what: 'the amount in euro',
  },
  {
    name: 'field2',
    rest: 'type: string, required: true',
    usual: 'reference',
    kinds: ['text', 'number', 'uuid'],
    what: 'what the service calls field2: ask it what that may be',
  },
]

/** The interface's own names, which are assumed if no payload can be read. */
const clientsFields: readonly SourceField[] = [
  { path: 'customerId', kind: 'text', about: '' },
  { path: 'orderDate', kind: 'text', about: '' },
  { path: 'amount', kind: 'number', about: '' },
  { path: 'field1', kind: 'text', about: '' },
  { path: 'field2', kind: 'text', about: '' },
]

/** A type that the user must name, and why. */
export interface UntoldType {
  readonly what: string
}

export interface MappingSource {
  /** Null if the fields decide. */
  readonly endpoint: Resource | null
  /** The query that reads the records; null if the outbox row has the fields. */
  readonly sql: readonly string[] | null
}

/** Proposes the mapping of one type. @param fields null if no payload could be read */
export function proposeMapping(
  type: string | UntoldType,
  fields: readonly SourceField[] | null,
  { endpoint: asked, sql }: MappingSource,
): MappingProposal {
  const items = fields?.find(({ path, kind }) => kind === 'array' && /(^|\.)(items|lines|positions)$/i.test(path))
  const amount = fields?.some(({ path }) => rankByUsualName([path], lastStep, 'amount').named.length > 0)
  const endpoint = asked ?? endpointOfNoun(items !== undefined && !amount ? 'order' : 'transaction')
  const proposed =
    endpoint === endpointOfNoun('order')
      ? proposeOrder(fields ?? [], items ?? null)
      : proposeData(fields ?? clientsFields)
  return { warnings: proposed.warnings, lines: [...head(type, endpoint, sql, fields === null), ...proposed.lines] }
}

function proposeData(fields: readonly SourceField[]): MappingProposal {
  const found = dataTargets.map((target) => ({ target, field: findField(fields, target) }))
  const field1 = fields.find(({ path }) => normalizeName(lastStep(path)) === 'field1')
  const used = new Set([...found.map(({ field }) => field?.path), field1?.path])
  const left = fields.filter(({ path }) => !used.has(path))
  return {
    warnings: found.flatMap(({ field }) => (field === null ? [] : typeWarnings(field))),
    lines: [
      ...found.map(({ target, field }) => fieldLine(target, field, left)),
      field1Line(field1),
      { text: 'body:', comment: 'the request; ${name} puts a mapped value, with its type' },
      { text: '  customerId: ${customer_id}' },
      { text: '  data:' },
      ...['field1', 'field2', 'customer_id', 'order_date', 'total_amount'].map((name) => ({
        text: `    ${name}: \${${name}}`,
      })),
      ...leftOut(left),
    ],
  }
}

function proposeOrder(fields: readonly SourceField[], items: SourceField | null): MappingProposal {
  const field = findField(fields, orderCustomer)
  // A text column may hold texts that are not uuids. The value of a payload is known.
  const isKnown = field === null || field.kind === 'uuid' || field.about === ''
  return {
    warnings: [],
    lines: [
      isKnown ? fieldLine(orderCustomer, field, fields) : unknownUuid(field),
      items === null
        ? { text: '  items: { from: "", type: array, required: true }', fillIn: 'from: the list of the order’s lines' }
        : {
            text: `  items: { from: ${quoteYaml(items.path)}, type: array, required: true }`,
            comment: 'as they are, digit for digit',
          },
      { text: 'body:', comment: 'the request; ${name} puts a mapped value, with its type' },
      { text: '  customerId: ${customer_id}' },
      { text: '  items: ${items}' },
      ...leftOut(fields.filter(({ path }) => path !== items?.path && path !== field?.path)),
    ],
  }
}

const orderCustomer: Target = {
  name: 'customer_id',
  rest: 'type: uuid, required: true',
  usual: 'customer',
  kinds: ['uuid', 'text'],
  what: 'the customer’s uuid',
}

const unknownUuid = ({ path, about }: SourceField): YamlLine => ({
  text: `  customer_id: { from: "", ${orderCustomer.rest} }`,
  fillIn: `from: the customer’s uuid, as the service knows it. No column has the type uuid. Name one of ${path} (${about}) if it holds uuids, or a column that you add to the query`,
})

export const endpointOfNoun = (noun: (typeof serviceResources)[Resource]['noun']): Resource =>
  resourceNames.find((resource) => serviceResources[resource].noun === noun) ?? resourceNames[0]

function head(
  type: string | UntoldType,
  endpoint: Resource,
  sql: readonly string[] | null,
  isUnseen: boolean,
): YamlLine[] {
  const unseen =
    'No payload with fields was found. These are the names of a client’s fields in docs/reference/interface.md.'
  return [
    { text: '# yaml-language-server: $schema=./mapping.schema.json' },
    typeof type !== 'string'
      ? { text: 'type:', fillIn: type.what }
      : { text: `type: ${quoteYaml(type)}`, comment: 'outbox rows of this type' },
    { text: `endpoint: ${endpoint}`, comment: resourceNames.join(' | ') },
    ...(sql === null
      ? []
      : [{ text: 'source: |', comment: 'one row for each id of $1' }, ...sql.map((line) => ({ text: `  ${line}` }))]),
    ...(isUnseen ? [{ text: '', comment: unseen }] : []),
    { text: 'fields:', comment: 'the service’s name: its path in the payload, and its type' },
  ]
}

const lastStep = (path: string) => path.split('.').at(-1) ?? ''

const findField = (fields: readonly SourceField[], { usual, kinds }: Target): SourceField | null =>
  chooseByUsualName(
    fields.filter(({ kind }) => kinds.includes(kind)),
    ({ path }) => lastStep(path),
    usual,
  )

function fieldLine(
  { name, rest, usual, kinds, what }: Target,
  field: SourceField | null,
  all: readonly SourceField[],
): YamlLine {
  if (field === null) {
    const fitting = all.filter(({ kind }) => kinds.includes(kind))
    const { alike } = rankByUsualName(fitting, ({ path }) => lastStep(path), usual)
    // If no field has the type, a text may be a date or an amount.
    const typed = fitting.filter(({ kind }) => kind !== 'text' || kinds[0] === 'text')
    const likely = [alike, typed, fitting].find((each) => each.length > 0) ?? []
    const candidates = likely.slice(0, candidatesMax).map(({ path }) => path)
    const choice = candidates.length === 0 ? '; nothing here looks like it' : `; one of: ${candidates.join(', ')}`
    return { text: `  ${name}: { from: "", ${rest} }`, fillIn: `from: ${what}${choice}` }
  }
  const from = `from: ${quotePath(field.path)}`
  if (name === 'order_date' && field.kind === 'localTime')
    return {
      text: `  ${name}: { ${from}, timezone: "", ${rest} }`,
      fillIn: field.about === 'date' ? zoneOfDays : zoneOfTimes,
    }
  const trim = /^character\(/.test(field.about) ? 'trim: true, ' : ''
  return { text: `  ${name}: { ${from}, ${trim}${rest} }`, comment: field.about }
}

/** The user would not read a longer list. */
const candidatesMax = 12

const zoneOfTimes = 'timezone: where these times are at home, as UTC or Europe/Berlin'
const zoneOfDays =
  'timezone: where these days begin. UTC sends 2026-11-20 as 2026-11-20T00:00:00Z; Europe/Berlin as 2026-11-19T23:00:00Z'

/** Writes a path for a flow mapping, where only names need no quotes. */
const quotePath = (path: string) => (/^[A-Za-z_][\w.-]*$/.test(path) ? path : JSON.stringify(path))

function field1Line(field: SourceField | undefined): YamlLine {
  const values = 'type: enum, values: [value1, value2, value3]'
  return field === undefined
    ? {
        text: `  field1: { constant: value1, ${values} }`,
        comment: 'or map a column to these values, with from and lookup',
      }
    : { text: `  field1: { from: ${quotePath(field.path)}, ${values}, default: value1 }` }
}

function typeWarnings({ path, kind, about }: SourceField): string[] {
  if (kind === 'double')
    return [`"${path}" is ${about}, a floating-point number, so its decimals may be inexact. Use numeric for money`]
  if (kind === 'money')
    return [
      `"${path}" is money, which Postgres prints with a currency’s sign: every record would be rejected. Keep it in numeric`,
    ]
  return []
}

function leftOut(fields: readonly SourceField[]): YamlLine[] {
  if (fields.length === 0) return []
  const list = fields.map(({ path, about }) => (about === '' ? path : `${path} (${about})`)).join(', ')
  return [{ text: '', comment: `Not sent: ${list}` }]
}
