import { type Resource, resourceNames, serviceResources } from '../resources.ts'
import { quoteForYaml, type YamlLine } from '../yaml/yamlLines.ts'
import type { SourceField } from './sourceFields.ts'
import { chooseByUsualName, type UsualNameKind } from './usualNames.ts'

/** A field of the service (docs/reference/interface.md, 2.5 and 2.6). */
interface Target {
  readonly name: string
  readonly rest: string
  readonly usual: UsualNameKind
  /** The kinds that fit, the likeliest first. */
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
    kinds: ['number', 'text'],
    what: 'the amount in euro, of type numeric: money and double precision are not exact',
  },
  {
    name: 'field2',
    rest: 'type: string, required: true',
    usual: 'reference',
    kinds: ['text', 'number', 'uuid'],
    what: 'the value of the service’s field2: ask the operator of the service what it may contain',
  },
]

const dataBody = `  customerId: \${customer_id}
  data:
    field1: \${field1}
    field2: \${field2}
    customer_id: \${customer_id}
    order_date: \${order_date}
    total_amount: \${total_amount}`

const orderTargets: readonly Target[] = [
  {
    name: 'customer_id',
    rest: 'type: uuid, required: true',
    usual: 'customer',
    kinds: ['uuid', 'text'],
    what: 'the customer’s uuid, as the service knows it. If nothing here has it, add a column to the query',
  },
  {
    name: 'items',
    rest: 'type: array, required: true',
    usual: 'items',
    kinds: ['array'],
    what: 'the list of the order’s lines, which are sent as they are, digit for digit',
  },
]

const orderBody = `  customerId: \${customer_id}
  items: \${items}`

export interface TypeToFillIn {
  readonly fillIn: string
}

export interface MappingSource {
  /** Null to choose the endpoint by the fields. */
  readonly endpoint: Resource | null
  /** Null if the outbox row has the fields. */
  readonly sql: readonly string[] | null
}

/** @param fields empty if no payload could be read */
export function proposeMapping(
  type: string | TypeToFillIn,
  fields: readonly SourceField[],
  { endpoint: asked, sql }: MappingSource,
): YamlLine[] {
  const hasItems = chooseByUsualName(fields.filter(isArray), 'items') !== null
  const hasAmount = chooseByUsualName(fields, 'amount') !== null
  const endpoint = asked ?? findResourceByNoun(hasItems && !hasAmount ? 'order' : 'transaction')
  const isOrder = endpoint === findResourceByNoun('order')
  const found = (isOrder ? orderTargets : dataTargets).map((target) => ({ target, field: findField(fields, target) }))
  const field1 = isOrder ? null : chooseByUsualName(fields, 'field1')
  const left = fields.filter((each) => each !== field1 && !found.some(({ field }) => field === each))
  const list = left.map(({ path, columnType }) => (columnType === '' ? path : `${path} (${columnType})`)).join(', ')
  return [
    ...head(type, endpoint, sql),
    ...found.map(({ target, field }) => fieldLine(target, field, left)),
    ...(isOrder ? [] : [field1Line(field1)]),
    { text: 'body:', comment: 'the request; ${name} puts a mapped value, with its type' },
    { text: isOrder ? orderBody : dataBody },
    ...(list === '' ? [] : [{ text: '', comment: `Not sent: ${list}` }]),
  ]
}

const isArray = ({ kind }: SourceField) => kind === 'array'

export const findResourceByNoun = (noun: (typeof serviceResources)[Resource]['noun']): Resource =>
  resourceNames.find((resource) => serviceResources[resource].noun === noun) ?? resourceNames[0]

function head(type: string | TypeToFillIn, endpoint: Resource, sql: readonly string[] | null): YamlLine[] {
  return [
    { text: '# yaml-language-server: $schema=./mapping.schema.json' },
    typeof type !== 'string'
      ? { text: 'type:', fillIn: type.fillIn }
      : { text: `type: ${quoteForYaml(type)}`, comment: 'outbox rows of this type' },
    { text: `endpoint: ${endpoint}`, comment: resourceNames.join(' | ') },
    ...(sql === null
      ? []
      : [{ text: 'source: |', comment: 'one row for each id of $1' }, ...sql.map((line) => ({ text: `  ${line}` }))]),
    { text: 'fields:', comment: 'the service’s name: its path in the payload, and its type' },
  ]
}

function findField(fields: readonly SourceField[], { usual, kinds }: Target): SourceField | null {
  // A text column is not proposed for a uuid, because it may hold other texts.
  const isKnown = ({ kind, columnType }: SourceField) => kinds[0] !== 'uuid' || kind === 'uuid' || columnType === ''
  return chooseByUsualName(
    fields.filter((field) => kinds.includes(field.kind) && isKnown(field)),
    usual,
  )
}

function field1Line(field: SourceField | null): YamlLine {
  const values = 'type: enum, values: [value1, value2, value3]'
  if (field !== null) return { text: `  field1: { from: ${quotePath(field.path)}, ${values}, default: value1 }` }
  const comment = 'or map a column to these values, with from and lookup'
  return { text: `  field1: { constant: value1, ${values} }`, comment }
}

const candidatesMax = 12

function fieldLine(target: Target, field: SourceField | null, all: readonly SourceField[]): YamlLine {
  const { name, rest, kinds, what } = target
  if (field === null) {
    const fitting = all.filter(({ kind }) => kinds.includes(kind))
    // Text fields, which may hold dates or amounts, are listed only if no field has the right kind.
    const typed = fitting.filter(({ kind }) => kind !== 'text' || kinds[0] === 'text')
    const candidates = (typed.length > 0 ? typed : fitting).slice(0, candidatesMax).map(({ path }) => path)
    const choice = candidates.length === 0 ? '; no field here fits' : `; one of: ${candidates.join(', ')}`
    return { text: `  ${name}: { from: "", ${rest} }`, fillIn: `from: ${what}${choice}` }
  }
  const from = `from: ${quotePath(field.path)}`
  if (name === 'order_date' && field.kind === 'localTime')
    return {
      text: `  ${name}: { ${from}, timezone: "", ${rest} }`,
      fillIn: field.columnType === 'date' ? zoneOfDays : zoneOfTimes,
    }
  const trim = /^character\(/.test(field.columnType) ? 'trim: true, ' : ''
  return { text: `  ${name}: { ${from}, ${trim}${rest} }`, comment: field.columnType }
}

const zoneOfTimes = 'timezone: the zone of these times, such as UTC or Europe/Berlin'
const zoneOfDays =
  'timezone: the zone in which these days begin. UTC sends 2026-11-20 as 2026-11-20T00:00:00Z; Europe/Berlin as 2026-11-19T23:00:00Z'

const quotePath = (path: string) => (/^[A-Za-z_][\w.-]*$/.test(path) ? path : JSON.stringify(path))
