import { type Resource, resourceNames, resources } from '../resources.ts'
import { quoteYaml, type YamlLine } from '../yaml/yamlLines.ts'
import type { SourceField } from './sourceFields.ts'

/** A mapping file to read and to fill in. */
export interface MappingProposal {
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

/** A field of the service's (docs/interface.md, 2.5 and 2.6), and what clients call it, the likeliest first. */
interface Target {
  readonly name: string
  readonly rest: string
  readonly called: readonly string[]
  readonly kinds: readonly SourceField['kind'][]
  readonly what: string
}

const customers = [
  'customerid',
  'customerno',
  'customernumber',
  'customercode',
  'customer',
  'kundennummer',
  'kundennr',
  'accountno',
  'debtorno',
]

const dataTargets: readonly Target[] = [
  {
    name: 'customer_id',
    rest: 'type: string, maxLength: 10, required: true',
    called: customers,
    kinds: ['text', 'number', 'uuid'],
    what: 'the customer: 10 characters at most',
  },
  {
    name: 'order_date',
    rest: 'type: datetime, required: true',
    called: [
      'orderdate',
      'orderedat',
      'ordered',
      'orderedon',
      'ordertime',
      'documentdate',
      'bookingdate',
      'invoicedate',
      'date',
      'bestelldatum',
    ],
    kinds: ['time', 'localTime', 'text'],
    what: 'the date of the order: ISO 8601 with an offset, or say timezone: Europe/Berlin',
  },
  {
    name: 'total_amount',
    rest: 'type: "decimal(10,2)", required: true',
    called: [
      'amount',
      'totalamount',
      'total',
      'netamount',
      'grossamount',
      'totalnet',
      'totalgross',
      'sum',
      'nettotal',
      'betrag',
    ],
    kinds: ['number', 'double', 'money', 'text'],
    what: 'the amount in euro',
  },
  {
    name: 'field2',
    rest: 'type: string, required: true',
    called: ['field2', 'reference', 'orderno', 'ordernumber', 'documentno', 'number', 'description'],
    kinds: ['text', 'number', 'uuid'],
    what: 'what the service calls field2: ask it what that may be',
  },
]

/** The fields that a payload has by the interface's own names, where none can be looked at. */
const clientsFields: readonly SourceField[] = [
  { path: 'customerId', kind: 'text', about: '' },
  { path: 'orderDate', kind: 'text', about: '' },
  { path: 'amount', kind: 'number', about: '' },
  { path: 'field1', kind: 'text', about: '' },
  { path: 'field2', kind: 'text', about: '' },
]

/** A type that a person has to name: `what` says what it is, and why nobody else can. */
export interface UntoldType {
  readonly what: string
}

/**
 * Proposes the mapping of one type. Pure.
 *
 * @param fields null: there was no payload to look at
 */
export function proposeMapping(type: string | UntoldType, fields: readonly SourceField[] | null): MappingProposal {
  const items = fields?.find(({ path, kind }) => kind === 'array' && /(^|\.)(items|lines|positions)$/i.test(path))
  const amount = fields?.some(({ path }) => dataTargets[2]?.called.includes(called(path)))
  return items !== undefined && fields !== null && !amount
    ? proposeOrder(type, fields, items)
    : proposeData(type, fields)
}

function proposeData(type: string | UntoldType, known: readonly SourceField[] | null): MappingProposal {
  const fields = known ?? clientsFields
  const found = dataTargets.map((target) => ({ target, field: findField(fields, target) }))
  const field1 = fields.find(({ path }) => called(path) === 'field1')
  const used = new Set([...found.map(({ field }) => field?.path), field1?.path])
  return {
    warnings: found.flatMap(({ field }) => (field === null ? [] : typeWarnings(field))),
    lines: [
      ...head(type, endpointFor('transaction'), known === null),
      ...found.map(({ target, field }) => fieldLine(target, field)),
      field1Line(field1),
      { text: 'body:', comment: 'the request; ${name} puts a mapped value, with its type' },
      { text: '  customerId: ${customer_id}' },
      { text: '  data:' },
      ...['field1', 'field2', 'customer_id', 'order_date', 'total_amount'].map((name) => ({
        text: `    ${name}: \${${name}}`,
      })),
      ...leftOut(fields.filter(({ path }) => !used.has(path))),
    ],
  }
}

function proposeOrder(type: string | UntoldType, fields: readonly SourceField[], items: SourceField): MappingProposal {
  const customer: Target = {
    ...(dataTargets[0] as Target),
    kinds: ['uuid', 'text'],
    rest: 'type: uuid, required: true',
    what: 'the customer’s uuid',
  }
  const field = findField(fields, customer)
  return {
    warnings: [],
    lines: [
      ...head(type, endpointFor('order'), false),
      fieldLine(customer, field),
      {
        text: `  items: { from: ${quoteYaml(items.path)}, type: array, required: true }`,
        comment: 'as they are, digit for digit',
      },
      { text: 'body:', comment: 'the request; ${name} puts a mapped value, with its type' },
      { text: '  customerId: ${customer_id}' },
      { text: '  items: ${items}' },
      ...leftOut(fields.filter(({ path }) => path !== items.path && path !== field?.path)),
    ],
  }
}

/** The resource that takes such things (docs/interface.md, section 1). */
const endpointFor = (noun: (typeof resources)[Resource]['noun']): Resource =>
  resourceNames.find((resource) => resources[resource].noun === noun) ?? resourceNames[0]

function head(type: string | UntoldType, endpoint: Resource, isUnseen: boolean): YamlLine[] {
  const unseen =
    'No payload with fields was there to look at: these are the names that docs/interface.md gives to a client’s fields.'
  return [
    { text: '# yaml-language-server: $schema=./mapping.schema.json' },
    typeof type !== 'string'
      ? { text: 'type:', fillIn: type.what }
      : { text: `type: ${quoteYaml(type)}`, comment: 'outbox rows of this type' },
    { text: `endpoint: ${endpoint}`, comment: resourceNames.join(' | ') },
    ...(isUnseen ? [{ text: '', comment: unseen }] : []),
    { text: 'fields:', comment: 'the service’s name: where it is in the payload, and what it is' },
  ]
}

/** The last step of a path, without case, blanks and underscores. */
const called = (path: string) => (path.split('.').at(-1) ?? '').toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

function findField(fields: readonly SourceField[], { called: wanted, kinds }: Target): SourceField | null {
  for (const name of wanted) {
    const found = fields.find(({ path, kind }) => called(path) === name && kinds.includes(kind))
    if (found !== undefined) return found
  }
  return null
}

function fieldLine({ name, rest, what }: Target, field: SourceField | null): YamlLine {
  if (field === null) return { text: `  ${name}: { from: "", ${rest} }`, fillIn: `from: ${what}` }
  const from = `from: ${quotePath(field.path)}`
  if (name === 'order_date' && field.kind === 'localTime')
    return {
      text: `  ${name}: { ${from}, timezone: "", ${rest} }`,
      fillIn: 'timezone: where these times are at home, as in Europe/Berlin',
    }
  const trim = /^character\(/.test(field.about) ? 'trim: true, ' : ''
  return { text: `  ${name}: { ${from}, ${trim}${rest} }`, comment: field.about }
}

/** A path within { }: only names stand there without quotes. */
const quotePath = (path: string) => (/^[A-Za-z_][\w.-]*$/.test(path) ? path : JSON.stringify(path))

function field1Line(field: SourceField | undefined): YamlLine {
  const values = 'type: enum, values: [value1, value2, value3]'
  return field === undefined
    ? { text: `  field1: { constant: value1, ${values} }`, comment: 'or from: … with a lookup' }
    : { text: `  field1: { from: ${quotePath(field.path)}, ${values}, default: value1 }` }
}

function typeWarnings({ path, kind, about }: SourceField): string[] {
  if (kind === 'double')
    return [
      `"${path}" is ${about}: its digits are those that Postgres prints of a binary fraction. Keep money in numeric`,
    ]
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
