import { z } from 'zod'
import { stateJsonForms, stateList } from './stateEntries.ts'

/** What `mappings/outbox.yaml` may say. Entries with several forms are checked form by form, so that errors name one. */

const column = z.string().min(1)

const typeForms = {
  constant: z.strictObject({ constant: z.string().min(1).describe('The type of every row.') }),
  column: z.strictObject({
    column: column.describe('The column with the type.'),
    values: z.record(z.string(), z.string()).describe('Value in the column: type of the mapping file.').optional(),
  }),
}

const createdAt = z.strictObject({
  column,
  unit: z.enum(['seconds', 'milliseconds', 'microseconds']).describe('Of a number since 1970.').optional(),
  timezone: z.string().describe('Where times without zone are at home: Europe/Berlin. Default UTC.').optional(),
})

const payloadForms = {
  columns: z.strictObject({
    columns: z
      .union([z.literal('all'), z.array(column).min(1), z.record(z.string(), column)])
      .describe('Build the payload of the row: all, a list of columns, or name in the payload: column.'),
  }),
  column: z.strictObject({
    column: column.describe('jsonb, json, text or bytea'),
    encoding: z
      .string()
      .describe('utf-8 (default), base64, hex, or the character set of a bytea: windows-1252, utf-16le')
      .optional(),
  }),
}

const whats = ['state', 'transaction_id', 'error_code', 'error', 'now'] as const
const writeForm = z.strictObject({
  what: z.enum(whats),
  on: stateList.describe('Only at these states; emptied when the record ends in another.').optional(),
})

/** The forms of the entries that have several. */
export const forms = { type: typeForms, createdAt, payload: payloadForms, write: writeForm, whats }

/** The file but for the entries with several forms. */
export const outboxFileSchema = z.strictObject({
  schema: z.string().min(1).describe('Without it, wherever the search path finds the table.').optional(),
  table: z.string().min(1).describe('As in the catalog, without quotes: OutboxMessage.'),
  id: column.describe('A column that names the row for ever: bigint, uuid, text.'),
  id_unique: z
    .literal('promised')
    .describe('No two rows have one id, though no index says so: a table partitioned by another column, a view.')
    .optional(),
  order: column.describe('Rows are taken in this order. Default: the id.').optional(),
  sequence: column
    .describe('With state: none: a column drawn from a sequence as the row is inserted (identity, serial).')
    .optional(),
  type: z.unknown().optional(),
  key: column.describe('Records of one key are sent in order; NULL means no order.').optional(),
  created_at: z.unknown().optional(),
  payload: z.unknown().optional(),
  filter: z
    .string()
    .min(1)
    .describe(
      'A condition in SQL; rows outside it are none of ours. On the row alone, never on the time, unless rows are marked as they are taken. With sequence: on columns that never change.',
    )
    .optional(),
  state: z.unknown().optional(),
  write: z.record(z.string(), z.unknown()).describe('Column: what outboxd writes into it.').optional(),
  channel: z.string().min(1).max(63).describe('A NOTIFY on it wakes the daemon.').optional(),
})

const about = {
  type: 'Which mapping file: a column, or { constant: data }.',
  created_at: 'When the record came to be: a column, or { column: …, unit: … }.',
  payload:
    'The JSON: a column, or { columns: … } to build it of the row. Default: { columns: { id: … } }, for a mapping file with source.',
  state: 'What says that a row waits; none where nothing does.',
}

/** The JSON Schema that editors complete and check outbox.yaml by. */
export function outboxJsonSchema(): string {
  const whole = outboxFileSchema.extend({
    type: z.union([column, typeForms.constant, typeForms.column]).describe(about.type),
    created_at: z.union([column, createdAt]).describe(about.created_at).optional(),
    payload: z.union([column, payloadForms.columns, payloadForms.column]).describe(about.payload).optional(),
    state: z.union([z.literal('none'), ...stateJsonForms]).describe(about.state),
    write: z.record(z.string(), z.union([z.enum(whats), writeForm])).optional(),
  })
  const schema = z.toJSONSchema(whole, { target: 'draft-7', io: 'input' })
  return `${JSON.stringify({ ...schema, title: 'outboxd outbox.yaml' }, null, 2)}\n`
}
