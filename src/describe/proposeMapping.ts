import { type Resource, resourceNames } from '../resources.ts'
import { quoteForYaml, withComment, withFillIn } from '../yaml/yamlLines.ts'
import { type CatalogColumn, type ColumnKind, kindOfColumn, labelColumns } from './catalogTable.ts'

export interface MappingSource {
  /** Null if the user has to give the type. */
  readonly type: string | null
  readonly endpoint: Resource
  /** Null if the outbox row has the fields. Its column `items` has the lines of an order. */
  readonly sql: readonly string[] | null
  /** The lines of `document`; none if a row is the record. */
  readonly document: readonly string[]
  /** The candidates for fields; none if the payload is JSON. */
  readonly columns: readonly CatalogColumn[]
}

/** Proposes a mapping file, in which names of columns decide nothing. */
export function proposeMapping({ type, endpoint, sql, document, columns }: MappingSource): string {
  const lines = [
    '# yaml-language-server: $schema=./mapping.schema.json',
    ...(type === null
      ? withFillIn('type: FILL_IN', 'the type that such rows have by outbox.yaml, in a file like this for each')
      : [withComment(`type: ${quoteForYaml(type)}`, 'outbox rows of this type')]),
    withComment(`endpoint: ${endpoint}`, `${resourceNames.join(' | ')}: describe takes --endpoint`),
    ...document,
    ...(sql === null ? [] : [withComment('source: |', 'one row for each id of $1'), ...sql.map((line) => `  ${line}`)]),
    withComment('fields:', 'the service’s name: its path in the payload, and its type'),
    ...fields[endpoint].flatMap(({ name, options, kinds, what }) =>
      name === 'items' && sql !== null
        ? [`  items: { from: items, required: true, ${options} }`]
        : withFillIn(
            `  ${name}: { from: FILL_IN, required: true, ${options} }`,
            what,
            labelColumns(kinds.flatMap((kind) => columns.filter((column) => kindOfColumn(column) === kind))),
          ),
    ),
    withComment('body:', 'the request; ${name} puts a mapped value, with its type'),
    bodies[endpoint],
  ]
  return `${lines.join('\n')}\n`
}

interface FieldProposal {
  readonly name: string
  readonly options: string
  /** The kinds of values that fit, the likeliest first. */
  readonly kinds: readonly ColumnKind[]
  /** What the user has to find out (docs/reference/interface.md, 2). */
  readonly what: string
}

const constant = 'A constant replaces from and required'

const fields: Readonly<Record<Resource, readonly FieldProposal[]>> = {
  data: [
    {
      name: 'customer_id',
      options: 'type: string, maxLength: 10',
      kinds: ['text', 'number', 'uuid'],
      what: 'the customer as the service knows it, in 10 characters at most: often not the id of your own tables',
    },
    {
      name: 'order_date',
      options: 'type: datetime',
      kinds: ['time', 'text'],
      what: 'the date of the order. If it has no offset, add timezone: Europe/Berlin (or UTC, to keep a day as it is)',
    },
    {
      name: 'total_amount',
      options: 'type: "decimal(10,2)"',
      kinds: ['number', 'text'],
      what: 'the amount in euro. Ask: with tax, or without?',
    },
    {
      name: 'field1',
      options: 'type: enum, values: [value1, value2, value3]',
      kinds: ['text'],
      what: `ask what they mean. ${constant}`,
    },
    {
      name: 'field2',
      options: 'type: string',
      kinds: ['text', 'number', 'uuid'],
      what: `ask what it may contain. ${constant}`,
    },
  ],
  orders: [
    {
      name: 'customer_id',
      options: 'type: uuid',
      kinds: ['uuid', 'text'],
      what: 'the customer’s uuid, as the service knows it. If no column has it, let the query select it',
    },
    {
      name: 'items',
      options: 'type: array',
      kinds: ['array'],
      what: 'the list of the order’s lines, which are sent as they are',
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
