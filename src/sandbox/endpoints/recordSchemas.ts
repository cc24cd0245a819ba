import { z } from 'zod'
import type { LiveSettings } from '../sandboxSettings.ts'
import { findNumberText } from './parseExactJson.ts'

/** Schemas of requests. Settings decide what docs/reference/interface.md leaves open. */

const guid = () => z.guid('must be a uuid').meta({ pattern: undefined })

/** Caches a schema per settings object, because making one takes a millisecond. Changed settings are a new object. */
function oncePerSettings<S>(make: (live: LiveSettings) => S): (live: LiveSettings) => S {
  const made = new WeakMap<LiveSettings, S>()
  return (live) => {
    const schema = made.get(live) ?? make(live)
    made.set(live, schema)
    return schema
  }
}

export const submissionSchema = oncePerSettings((live) => {
  const fields = mappedFields(live)
  const place = live.mappedFields
  const objectOf = place === 'refused' ? z.strictObject : z.looseObject
  const data = {
    field1: z.enum(['value1', 'value2', 'value3'], 'must be value1, value2 or value3'),
    field2: field2Of(live),
    ...(place === 'data' ? fields : {}),
  }
  return objectOf({
    customerId: upToTen(z.string().min(1, 'must not be empty'), live),
    data: objectOf(data),
    transactionId: ownId(transactionIdText(), live),
    ...(place === 'top' ? fields : {}),
  })
})

export const orderRequestSchema = oncePerSettings((live) =>
  z.looseObject({
    customerId: guid(),
    items: itemsOf(live),
    orderId: ownId(guid(), live).describe("The client's own id for the order; not in docs/reference/interface.md"),
  }),
)
export type OrderRequest = z.infer<ReturnType<typeof orderRequestSchema>>

const lengths = {
  characters: (value: string) => [...value].length,
  utf16: (value: string) => value.length,
  bytes: (value: string) => Buffer.byteLength(value),
}

function field2Of({ field2Empty, field2LengthMax, field2Pattern }: LiveSettings) {
  const filled = field2Empty ? z.string() : z.string().min(1, 'must not be empty')
  const matching =
    field2Pattern === null ? filled : filled.regex(new RegExp(field2Pattern, 'u'), `must match ${field2Pattern}`)
  if (field2LengthMax === null) return matching
  return matching
    .refine((value) => lengths.characters(value) <= field2LengthMax, `must have at most ${field2LengthMax} characters`)
    .meta({ maxLength: field2LengthMax })
}

/** maxLength counts characters, and holds for the other units, because 10 of them are at most 10 characters. */
function upToTen(schema: z.ZodString, { customerIdUnit }: LiveSettings) {
  const length = lengths[customerIdUnit]
  const what = { characters: 'characters', utf16: 'UTF-16 units', bytes: 'bytes' }[customerIdUnit]
  return schema.refine((value) => length(value) <= 10, `must have at most 10 ${what}`).meta({ maxLength: 10 })
}

function transactionIdText() {
  return z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
    .describe(
      "The client's own id for the transaction; not in docs/reference/interface.md, but the sandbox uses a given id",
    )
}

function ownId(taken: z.ZodType<string>, { ownIds }: LiveSettings): z.ZodType<string | undefined> {
  const schemas = {
    taken: taken.optional(),
    required: taken,
    ignored: z.any().optional(),
    refused: z.never('is not a field of this request').optional(),
  }
  return schemas[ownIds]
}

/** @see docs/reference/interface.md, 2.5 */
function mappedFields(live: LiveSettings) {
  const fields = z.object({
    customer_id: upToTen(z.string(), live),
    order_date: dateOf(live),
    total_amount: amountOf(live),
  })
  return live.mappedFieldsRequired ? fields.shape : fields.partial().shape
}

const amountPattern = /^-?\d{1,8}(\.\d{1,2})?$/

function amountOf({ amountForm }: LiveSettings) {
  const takesNumber = amountForm !== 'text'
  const takesText = amountForm !== 'number'
  const digits = (value: unknown) =>
    typeof value === 'string' ? takesText && value : takesNumber && findNumberText(value)
  const what = { either: '', number: 'a number, ', text: 'text, ' }[amountForm]
  return z
    .unknown()
    .refine(
      (value) => amountPattern.test(digits(value) || ''),
      `must be ${what}a decimal(10,2): at most 8 digits before and 2 after the point, no exponent`,
    )
    .meta({
      type: { either: ['number', 'string'], number: 'number', text: 'string' }[amountForm],
      pattern: amountPattern.source,
      minimum: -99_999_999.99,
      maximum: 99_999_999.99,
      description: 'decimal(10,2), euro. Without an exponent, because its digits are checked',
    })
}

function dateOf({ dateFractions, dateOffsets }: LiveSettings) {
  const seconds = dateFractions ? '(:[0-5]\\d([.,]\\d+)?)?' : '(:[0-5]\\d)?'
  const offset = { z: '[Zz]', utc: '([Zz]|[+-]00:00)', any: '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)' }[dateOffsets]
  const pattern = new RegExp(
    `^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]([01]\\d|2[0-3]):[0-5]\\d${seconds}${offset}$`,
  )
  const where = dateOffsets === 'any' ? 'with an offset' : 'in UTC'
  const error = `must be an ISO 8601 date-time ${where}, such as 2026-11-21T09:30:00Z`
  return z.string().regex(pattern, { error, abort: true }).refine(isOfTheCalendar, error)
}

function isOfTheCalendar(date: string): boolean {
  const [year = 0, month = 0, day = 0] = date.slice(0, 10).split('-').map(Number)
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
}

function itemsOf({ orderItems }: LiveSettings): z.ZodType<unknown[]> {
  const items = z.array(z.unknown(), 'must be an array')
  switch (orderItems) {
    case 'any':
      return items
    case 'filled':
      return items.min(1, 'must not be empty')
    case 'objects':
      return z.array(objectWith([]), 'must be an array')
    case 'sku':
      return z.array(objectWith(['sku', 'quantity']), 'must be an array')
    default:
      return orderItems satisfies never
  }
}

/** Accepts an object with these keys. Refuses a `JSON.rawJSON`, because that object stands for a number. */
function objectWith(keys: readonly string[]) {
  const isOne = (value: unknown) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    findNumberText(value) === undefined &&
    keys.every((key) => Object.hasOwn(value, key))
  return z
    .unknown()
    .refine(isOne, `must be an object${keys.length === 0 ? '' : ` with ${keys.join(' and ')}`}`)
    .meta({ type: 'object', required: keys })
}
