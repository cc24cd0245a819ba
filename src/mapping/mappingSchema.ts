import { z } from 'zod'
import { resourceNames } from '../resources.ts'
import { nameJsonKind, type PayloadValue, quoteForMessage } from '../yaml/exactJson.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'

export interface FieldSpec {
  type: string
  from?: string | undefined
  path?: string | undefined
  constant?: unknown
  required?: boolean | undefined
  default?: unknown
  trim?: boolean | undefined
  lookup?: Record<string, unknown> | undefined
  maxLength?: number | undefined
  values?: string[] | undefined
  round?: 'half-even' | 'half-up' | undefined
  as?: 'string' | undefined
  decimal_separator?: '.' | ',' | undefined
  timezone?: string | undefined
}

const common = {
  from: z
    .string()
    .min(1)
    .describe('The path of the value in the payload, such as customer.addresses[0].city or ["odd.key"].')
    .optional(),
  path: z.string().min(1).describe('Another name for `from`.').optional(),
  constant: z.unknown().describe('A fixed value for every record, in place of `from`.').optional(),
  required: z
    .boolean()
    .describe('true: a record without the value is rejected. false (default): a missing value is left out.')
    .optional(),
  default: z.unknown().describe('What to send if the value is missing or null.').optional(),
}
const trim = z.boolean().describe('true: white space at both ends is removed first.').optional()
const lookup = z
  .record(z.string(), z.unknown())
  .describe('A table that gives for each value in the payload the value to send. Other values are errors.')
  .optional()
const scalar = { ...common, trim, lookup }
const decimal_separator = z
  .enum(['.', ','])
  .describe('What separates the decimals of a text. If not set, a point, and three digits after it are an error.')
  .optional()
const as = z.literal('string').describe('string: the number is sent as text, such as "1234.50".').optional()

export const fieldSchemas = {
  string: z.strictObject({
    type: z.literal('string'),
    ...scalar,
    maxLength: z.int().min(1).describe('The most characters. A longer text is an error.').optional(),
  }),
  enum: z.strictObject({
    type: z.literal('enum'),
    ...scalar,
    values: z.array(z.string()).min(1).describe('The values that the service takes.'),
  }),
  uuid: z.strictObject({ type: z.literal('uuid'), ...scalar }),
  boolean: z.strictObject({ type: z.literal('boolean'), ...scalar }),
  integer: z.strictObject({ type: z.literal('integer'), ...scalar, decimal_separator, as }),
  decimal: z.strictObject({
    type: z
      .string()
      // YAML reads `{ type: decimal(10,2) }` as two parts: a value and a key.
      .regex(
        /^decimal\(\s*\d+\s*,\s*\d+\s*\)$/,
        'must be written "decimal(digits,decimals)", in quotes within { }, for example "decimal(10,2)"',
      )
      .describe('decimal(10,2): 10 digits in all, 2 of them after the point.'),
    ...scalar,
    round: z
      .enum(['half-even', 'half-up'])
      .describe('half-even or half-up: rounds to the decimals of the type. If not set, more decimals are an error.')
      .optional(),
    decimal_separator,
    as,
  }),
  datetime: z.strictObject({
    type: z.literal('datetime'),
    ...scalar,
    timezone: z
      .string()
      .describe('The zone of times without an offset, such as Europe/Berlin. If it is not set, they are errors.')
      .optional(),
  }),
  array: z.strictObject({ type: z.literal('array'), ...common }),
} satisfies Record<string, z.ZodType<FieldSpec>>

export type FieldTypeName = keyof typeof fieldSchemas

export function parseFieldTypeName(type: string): FieldTypeName | null {
  if (type.startsWith('decimal')) return 'decimal'
  return Object.hasOwn(fieldSchemas, type) ? (type as FieldTypeName) : null
}

export const fieldNamePattern = /^[A-Za-z_][A-Za-z0-9_-]*$/

const column = z.string().min(1)
const namePartPattern = '("([^"]|"")+"|[\\p{L}_][\\p{L}\\p{N}_$]*)'

/** A row stands for a document of the ERP. Needs `source`. */
export const documentSchema = z.strictObject({
  table: z
    .string()
    .regex(
      new RegExp(`^(${namePartPattern}\\.)?${namePartPattern}$`, 'u'),
      'must be a name as in SQL, such as public."Order"',
    )
    .describe('The table with one row for each document, as in SQL: public."Order".'),
  key: z
    .union([column, z.array(column).min(1)], { error: 'must be a column or a list of columns' })
    .describe('The column that identifies a document, or a list of columns.'),
  condition: z
    .string()
    .min(1)
    .describe('A condition in SQL: which documents are sent. The row is named h. Default: all.')
    .optional(),
})

/**
 * A mapping file. `document` and each field are checked by themselves, so that an error names only their own keys.
 */
export const mappingFileSchema = z.strictObject({
  type: z.string().min(1).max(200).describe('The type of the outbox rows that this file maps.'),
  endpoint: z.enum(resourceNames).describe('The endpoint of the service.'),
  track: z
    .boolean()
    .describe('false: the record is completed when the service accepts it, and is not polled. Default: true.')
    .optional(),
  source: z
    .string()
    .min(1)
    .describe('A SELECT that gives the payloads of the ids in $1: one row each, with the id in its column "id".')
    .optional(),
  document: z.unknown().optional(),
  fields: z
    .record(z.string().regex(fieldNamePattern), z.unknown())
    .describe('A name for each value that the body uses, with its path and type.'),
  list: z
    .record(z.string().min(1).max(40), z.string().min(1))
    .refine((columns) => Object.keys(columns).length <= 3, { message: 'at most 3 columns' })
    .describe('Columns of the lists in the console: for each heading the path of its value in the payload, at most 3.')
    .optional(),
  body: z
    .record(z.string(), z.unknown())
    .describe('The request. ${name} puts a value with its type, ${submission.id} the id of the submission.'),
})

/** For editors, in draft 7, which yaml-language-server reads best. */
export function createMappingJsonSchema(): string {
  const field = z.union(Object.values(fieldSchemas))
  const whole = mappingFileSchema.extend({
    document: documentSchema
      .describe('With source: each row stands for a document, whose changes are captured.')
      .optional(),
    fields: z.record(z.string().regex(fieldNamePattern), field),
  })
  const schema = z.toJSONSchema(whole, { target: 'draft-7', io: 'input' })
  return `${JSON.stringify({ ...schema, title: 'outboxd mapping file' }, null, 2)}\n`
}

const typeNames = Object.keys(fieldSchemas).map((name) => (name === 'decimal' ? 'decimal(10,2)' : name))

export function explainTypeProblem(type: PayloadValue | undefined): string {
  const known = `one of ${typeNames.join(', ')}`
  if (type === undefined) return `"type" is missing: ${known}`
  if (typeof type !== 'string') return `"type" must be ${known}, and is ${nameJsonKind(type)}`
  return `unknown type ${quoteForMessage(type)}: ${known}${didYouMeanHint(type, typeNames)}`
}
