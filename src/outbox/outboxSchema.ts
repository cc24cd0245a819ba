import { z } from 'zod'
import type { OutboxFileEntry } from './entryReader.ts'
import { stateEntry, stateListSchema } from './stateEntries.ts'

/* An entry with several forms is checked by one form, so that errors are about this form. */

const column = z.string().min(1)

const constantType = z.strictObject({ constant: z.string().min(1).describe('The type of every row.') })
const columnType = z.strictObject({
  column: column.describe('The column with the type.'),
  values: z.record(z.string(), z.string()).describe('Value in the column: type of the mapping file.').optional(),
})

const createdAt = z
  .strictObject({
    column: column.describe('The column.'),
    unit: z
      .enum(['seconds', 'milliseconds', 'microseconds'])
      .describe('The unit, if the column is a number since 1970.')
      .optional(),
    timezone: z
      .string()
      .refine(isTimezone, 'is not a known timezone: write it like Europe/Berlin')
      .describe('The zone of times without an offset, such as Europe/Berlin. Default: UTC.')
      .optional(),
  })
  .refine(({ unit, timezone }) => unit === undefined || timezone === undefined, {
    path: ['timezone'],
    message: 'is for a column with a time, and a number since 1970 has no timezone: remove "timezone" or "unit"',
  })

const columnsPayload = z.strictObject({
  columns: z
    .union([z.literal('all'), z.array(column).min(1), z.record(z.string(), column)], {
      error: 'must be all, a list of columns, or name: column',
    })
    .describe('Builds the payload from columns: all, a list, or pairs of name in the payload and column.'),
})
const columnPayload = z.strictObject({
  column: column.describe('A column of type jsonb, json, text or bytea.'),
  encoding: z
    .string()
    .refine(isEncoding, 'is unknown: known are utf-8, base64, hex, windows-1252, iso-8859-1, utf-16le')
    .describe('utf-8 (default), base64, hex, or only for bytea a character set. iso-8859-1 is read as windows-1252.')
    .optional(),
})

const whats = ['state', 'transaction_id', 'error_code', 'error', 'now'] as const
const written = z.strictObject({
  what: z.enum(whats).describe('What is written.'),
  on: stateListSchema.describe('States at which the column is written. Any other end state empties it.').optional(),
})

export const typeEntry: OutboxFileEntry<typeof constantType | typeof columnType> = {
  forms: [constantType, columnType],
  defaultForm: columnType,
  expected: 'the column with the type, or { constant: data }',
}
export const createdAtEntry: OutboxFileEntry<typeof createdAt> = {
  forms: [createdAt],
  defaultForm: createdAt,
  expected: 'a column, or { column: …, unit: milliseconds }',
}
export const payloadEntry: OutboxFileEntry<typeof columnsPayload | typeof columnPayload> = {
  forms: [columnsPayload, columnPayload],
  defaultForm: columnPayload,
  expected: 'a column, or { columns: … } to build it from the row',
}
export const writtenColumnEntry: OutboxFileEntry<typeof written> = {
  forms: [written],
  defaultForm: written,
  expected: `one of ${whats.join(', ')}, or { what: …, on: [completed] }`,
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

function isEncoding(name: string): boolean {
  try {
    return name === 'base64' || name === 'hex' || new TextDecoder(name).encoding !== ''
  } catch {
    return false
  }
}

const start = z
  .string()
  .regex(/^(now|beginning|id:.+)$/, 'must be now, beginning or id:N')
  .describe(
    'Where the first daemon begins: now (rows that exist are not sent), beginning (all waiting rows are) or id:N.',
  )
  .optional()
const changes = z
  .enum(['once', 'each'])
  .describe('What is sent for a document that changes: once (default: only its first version) or each (every version).')
  .optional()

/** A file without `table`, for the table that `outboxd migrate --outbox` creates. */
export const ourOutboxFileSchema = z.strictObject({ changes, start })

export const outboxFileSchema = z.strictObject({
  schema: z.string().min(1).describe('The schema. Default: the search path finds the table.').optional(),
  table: z.string().min(1).describe('The table or view, as in the catalog: OutboxMessage, without quotes.'),
  id: column.describe('A unique column that never changes: bigint, uuid or text.'),
  id_unique: z
    .literal('promised')
    .describe('promised: no two rows have the same id. Needed for a view or a partitioned table.')
    .optional(),
  order: column.describe('Orders the capture of rows. Default: the id, or with state: none the sequence.').optional(),
  sequence: column
    .describe('With state: none, and only then: a column that a sequence fills at the insert (identity, serial).')
    .optional(),
  type: z.unknown().optional(),
  key: column.describe('Records with the same text are sent in order. NULL means no order.').optional(),
  created_at: z.unknown().optional(),
  payload: z.unknown().optional(),
  filter: z
    .string()
    .min(1)
    .describe(
      'A condition in SQL; other rows are left alone. With state: none only comparisons of columns with constants.',
    )
    .optional(),
  state: z.unknown().optional(),
  write: z.record(z.string(), z.unknown()).optional(),
  changes,
  start,
  channel: z.string().min(1).max(63).describe('A channel; a NOTIFY on it wakes the daemon.').optional(),
})

const about = {
  write: 'Columns that outboxd writes.',
  type: 'The type, which decides the mapping file: a column, or { constant: data }.',
  created_at: 'When the record was created: a column, or { column: …, unit: … }.',
  payload: 'The JSON: a column, or { columns: … }. Default: only the id, for a mapping file with source.',
  state:
    'How to see that a row waits: status, flag or timestamp; none if nothing in the row says so, and rows never change.',
}

export function outboxJsonSchema(): string {
  const whole = outboxFileSchema.extend({
    type: z.union([column, ...typeEntry.forms]).describe(about.type),
    created_at: z.union([column, createdAt]).describe(about.created_at).optional(),
    payload: z
      .union([column, ...payloadEntry.forms])
      .describe(about.payload)
      .optional(),
    state: z.union([z.literal('none'), ...stateEntry.forms]).describe(about.state),
    write: z
      .record(z.string(), z.union([z.enum(whats), written]))
      .describe(about.write)
      .optional(),
  })
  const { required, ...schema } = z.toJSONSchema(whole, { target: 'draft-7', io: 'input' })
  const isForOurTable = { propertyNames: { enum: Object.keys(ourOutboxFileSchema.shape) } }
  const complete = { ...schema, anyOf: [{ required }, isForOurTable], title: 'outboxd outbox.yaml' }
  return `${JSON.stringify(complete, null, 2)}\n`
}
