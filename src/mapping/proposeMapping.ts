import { type Resource, resourceNames } from '../resources.ts'
import { quoteForYaml, type YamlLine } from '../yaml/yamlLines.ts'
import type { SourceField } from './sourceFields.ts'

/** A field of the service (docs/reference/interface.md, 2.2, 2.5 and 2.6). */
interface Target {
  readonly name: string
  /** The client's name in the contract. Only a sample payload that has this very name fills in `from`. */
  readonly contractName: string
  readonly rest: string
  readonly kinds: readonly SourceField['kind'][]
  readonly what: string
}

const targets: Readonly<Record<Resource, readonly Target[]>> = {
  data: [
    {
      name: 'customer_id',
      contractName: 'customerId',
      rest: 'type: string, maxLength: 10, required: true',
      kinds: ['text', 'number', 'uuid'],
      what: 'the customer as the service knows it, in 10 characters at most: often not the id of your own tables',
    },
    {
      name: 'order_date',
      contractName: 'orderDate',
      rest: 'type: datetime, required: true',
      kinds: ['time', 'localTime', 'text'],
      what: 'the date of the order. If it has no offset, add timezone: Europe/Berlin (or UTC, to keep a day as it is)',
    },
    {
      name: 'total_amount',
      contractName: 'amount',
      rest: 'type: "decimal(10,2)", required: true',
      kinds: ['number', 'text'],
      what: 'the amount in euro. Ask whether the service wants it with tax',
    },
    {
      name: 'field1',
      contractName: 'field1',
      rest: 'required: true, type: enum, values: [value1, value2, value3]',
      kinds: ['text'],
      what: 'ask what the values mean. constant: value1 replaces from and required; for a column with other values add lookup',
    },
    {
      name: 'field2',
      contractName: 'field2',
      rest: 'required: true, type: string',
      kinds: ['text', 'number', 'uuid'],
      what: 'ask what it may contain. constant: TEXT replaces from and required',
    },
  ],
  orders: [
    {
      name: 'customer_id',
      contractName: 'customerId',
      rest: 'type: uuid, required: true',
      kinds: ['uuid'],
      what: 'the customer’s uuid, as the service knows it. If nothing here has it, add a column to the query',
    },
    {
      name: 'items',
      contractName: 'items',
      rest: 'type: array, required: true',
      kinds: ['array'],
      what: 'the list of the order’s lines, which are sent as they are, digit for digit',
    },
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

export interface MappingSource {
  /** Null if the user has to give the type. */
  readonly type: string | null
  readonly endpoint: Resource
  /** Null if the outbox row has the fields. */
  readonly sql: readonly string[] | null
  /** Fields of sample payloads, and of the query. Those with a name of the contract are filled in. */
  readonly payloadFields: readonly SourceField[]
  /** Columns, as candidates only: `label` describes them. */
  readonly columns: readonly (SourceField & { readonly label: string })[]
}

export function proposeMapping({ type, endpoint, sql, payloadFields, columns }: MappingSource): YamlLine[] {
  const candidates = [...payloadFields.map((field) => ({ ...field, label: field.path })), ...columns]
  return [
    { text: '# yaml-language-server: $schema=./mapping.schema.json' },
    type === null
      ? { text: 'type: FILL_IN', fillIn: 'the type that such rows have by outbox.yaml, in a file like this for each' }
      : { text: `type: ${quoteForYaml(type)}`, comment: 'outbox rows of this type' },
    { text: `endpoint: ${endpoint}`, comment: `${resourceNames.join(' | ')}: describe takes --endpoint` },
    ...(sql === null
      ? []
      : [{ text: 'source: |', comment: 'one row for each id of $1' }, ...sql.map((line) => ({ text: `  ${line}` }))]),
    { text: 'fields:', comment: 'the service’s name: its path in the payload, and its type' },
    ...targets[endpoint].map((target) => {
      const [known, ...others] = payloadFields.filter(({ name }) => name === target.contractName)
      return known !== undefined && others.length === 0 && target.kinds.includes(known.kind)
        ? { text: `  ${target.name}: { from: ${quotePath(known.path)}, ${target.rest} }` }
        : openField(target, candidates)
    }),
    { text: 'body:', comment: 'the request; ${name} puts a mapped value, with its type' },
    { text: bodies[endpoint] },
  ]
}

function openField(
  { name, rest, kinds, what }: Target,
  candidates: readonly (SourceField & { label: string })[],
): YamlLine {
  const fitting = candidates.filter(({ kind }) => kinds.includes(kind))
  // Texts, which may hold dates or amounts, are listed only if no field has the right kind.
  const typed = fitting.filter(({ kind }) => kind !== 'text' || kinds[0] === 'text')
  const labels = (typed.length > 0 ? typed : fitting).map(({ label }) => label)
  const choice = labels.length === 0 ? '; nothing here fits' : `; one of: ${labels.join(', ')}`
  return { text: `  ${name}: { from: FILL_IN, ${rest} }`, fillIn: `${what}${choice}` }
}

const quotePath = (path: string) => (/^[A-Za-z_][\w.-]*$/.test(path) ? path : JSON.stringify(path))
