import type { SourceField } from '../mapping/sourceFields.ts'
import { type Resource, resourceNames } from '../resources.ts'
import { quoteForYaml, withComment, withFillIn } from '../yaml/yamlLines.ts'

export interface MappingSource {
  /** Null if the user has to give the type. */
  readonly type: string | null
  readonly endpoint: Resource
  /** Null if the outbox row has the fields. */
  readonly sql: readonly string[] | null
  /** The lines of `document`; null if a row is the record. */
  readonly document: readonly string[] | null
  /** Fields of sample payloads and of the query. Those with a name of the interface are filled in. */
  readonly payloadFields: readonly SourceField[]
  /** Columns, as candidates only: `label` describes them. */
  readonly columns: readonly Candidate[]
}

type Candidate = SourceField & { readonly label: string }

/** Proposes a mapping file, in which names of columns decide nothing. */
export function proposeMapping({ type, endpoint, sql, document, payloadFields, columns }: MappingSource): string {
  const candidates = [...payloadFields.map((field) => ({ ...field, label: field.path })), ...columns]
  const lines = [
    '# yaml-language-server: $schema=./mapping.schema.json',
    type === null
      ? withFillIn('type: FILL_IN', 'the type that such rows have by outbox.yaml, in a file like this for each')
      : withComment(`type: ${quoteForYaml(type)}`, 'outbox rows of this type'),
    withComment(`endpoint: ${endpoint}`, `${resourceNames.join(' | ')}: describe takes --endpoint`),
    ...(document ?? []),
    ...(sql === null ? [] : [withComment('source: |', 'one row for each id of $1'), ...sql.map((line) => `  ${line}`)]),
    withComment('fields:', 'the service’s name: its path in the payload, and its type'),
    ...fields[endpoint].map(([name, options, what]) => fieldLine(name, options, what, payloadFields, candidates)),
    withComment('body:', 'the request; ${name} puts a mapped value, with its type'),
    bodies[endpoint],
  ]
  return `${lines.join('\n')}\n`
}

/** The service's name of a field, its options, and what the user has to find out (docs/reference/interface.md, 2). */
type FieldProposal = readonly [name: string, options: string, what: string]

const uuid = 'the customer’s uuid, as the service knows it. If nothing here has it, let the query select it'
const customer = 'the customer as the service knows it, in 10 characters at most: often not the id of your own tables'
const date = 'the date of the order. If it has no offset, add timezone: Europe/Berlin (or UTC, to keep a day as it is)'
const constant = 'A constant replaces from and required'

const fields: Readonly<Record<Resource, readonly FieldProposal[]>> = {
  data: [
    ['customer_id', 'type: string, maxLength: 10, required: true', customer],
    ['order_date', 'type: datetime, required: true', date],
    ['total_amount', 'type: "decimal(10,2)", required: true', 'the amount in euro. Ask: with tax, or without?'],
    ['field1', 'required: true, type: enum, values: [value1, value2, value3]', `ask what they mean. ${constant}`],
    ['field2', 'required: true, type: string', `ask what it may contain. ${constant}`],
  ],
  orders: [
    ['customer_id', 'type: uuid, required: true', uuid],
    ['items', 'type: array, required: true', 'the list of the order’s lines, which are sent as they are'],
  ],
}

const bodies: Readonly<Record<Resource, string>> = {
  data: `  customerId: \${customer_id}
  data:
    field1: \${field1}
    field2: \${field2}
    customer_id: \${customer_id}
    order_date: \${order_date}
    total_amount: \${total_amount}`,
  orders: `  customerId: \${customer_id}
  items: \${items}`,
}

/** The client's names (docs/reference/interface.md, 2.5), if they are not the service's. */
const clientNames: Readonly<Record<string, string>> = {
  customer_id: 'customerId',
  order_date: 'orderDate',
  total_amount: 'amount',
}

/** The kinds of values that fit each type, the likeliest first. */
const kindsOfTypes: Readonly<Record<string, readonly SourceField['kind'][]>> = {
  string: ['text', 'number', 'uuid'],
  enum: ['text'],
  datetime: ['time', 'localTime', 'text'],
  decimal: ['number', 'text'],
  uuid: ['uuid'],
  array: ['array'],
}

function fieldLine(
  name: string,
  options: string,
  what: string,
  payloadFields: readonly SourceField[],
  candidates: readonly Candidate[],
): string {
  const kinds = kindsOfTypes[/type: "?(\w+)/.exec(options)?.[1] ?? ''] ?? []
  const [known, other] = payloadFields.filter((field) => field.name === (clientNames[name] ?? name))
  if (known !== undefined && other === undefined && kinds.includes(known.kind))
    return `  ${name}: { from: ${quotePath(known.path)}, ${options} }`
  const fitting = candidates.filter(({ kind }) => kinds.includes(kind))
  // Texts, which may hold dates or amounts, are listed only if no field has the right kind.
  const typed = fitting.filter(({ kind }) => kind !== 'text' || kinds[0] === 'text')
  const labels = (typed.length > 0 ? typed : fitting).map(({ label }) => label)
  const choice = labels.length === 0 ? 'nothing here fits' : `one of: ${labels.join(', ')}`
  return withFillIn(`  ${name}: { from: FILL_IN, ${options} }`, `${what}; ${choice}`)
}

const quotePath = (path: string) => (/^[A-Za-z_][\w.-]*$/.test(path) ? path : JSON.stringify(path))
