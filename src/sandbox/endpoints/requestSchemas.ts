import { z } from 'zod'

/** What goes over the wire, by section of docs/interface.md; validates requests, types answers and makes the OpenAPI document. */

const noNul = (value: string) => !value.includes('\u0000')
const text = () => z.string().refine(noNul, 'must not contain the character U+0000')
const guid = () => z.guid('must be a uuid').meta({ pattern: undefined })
const utcPattern =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?([Zz]|[+-]00:00)$/
const utcError = 'must be an ISO 8601 date-time in UTC, such as 2026-11-21T09:30:00Z'
const utc = () => z.string().regex(utcPattern, { error: utcError, abort: true }).refine(isOfTheCalendar, utcError)

/** Whether the month has that day. */
function isOfTheCalendar(date: string): boolean {
  const [year = 0, month = 0, day = 0] = date.slice(0, 10).split('-').map(Number)
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
}

/** Characters, and not the 16-bit halves of which JavaScript makes some: JSON Schema's maxLength counts so, too. */
const upToTen = (schema: z.ZodString) =>
  schema.refine((value) => [...value].length <= 10, 'must have at most 10 characters').meta({ maxLength: 10 })

/** The most characters of an Idempotency-Key: Postgres keeps an index of them, whose entries are bounded. */
export const idempotencyKeyMax = 255

const ownId = (what: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
    .optional()
    .describe(
      `The client's own id for the ${what}; the interface does not show one, the sandbox takes it when it is there`,
    )

export const amountPattern = /^-?\d{1,8}(\.\d{1,2})?$/

/** Section 2.5: decimal(10,2), judged by its digits; parseExactly hands numbers over as text. */
const amount = z
  .string()
  .regex(amountPattern, 'must be a decimal(10,2): at most 8 digits before and 2 after the point, no exponent')
  .meta({
    type: ['number', 'string'],
    minimum: -99_999_999.99,
    maximum: 99_999_999.99,
    description: 'decimal(10,2), euro; a number, or its digits as a string. No exponent, as it is judged by its digits',
  })

/** Section 2.2, and 2.5 inside data. */
export const submissionSchema = z.looseObject({
  customerId: upToTen(text().min(1, 'must not be empty')),
  data: z.looseObject({
    field1: z.enum(['value1', 'value2', 'value3'], 'must be value1, value2 or value3'),
    field2: text(),
    customer_id: upToTen(text()).optional(),
    order_date: utc().optional(),
    total_amount: amount.optional(),
  }),
  transactionId: ownId('transaction'),
})

/** Section 2.3. */
export const acceptedSchema = z.object({
  transactionId: z.string(),
  status: z.literal('accepted'),
  timestamp: z.iso.datetime(),
})

/** Section 2.4. */
export const transactionSchema = z.object({
  transactionId: z.string(),
  status: z.enum(['pending', 'completed', 'failed']),
  result: z.object({ customerId: z.string(), processedAt: z.iso.datetime() }).optional(),
  errorCode: z.string().optional(),
})

/** Section 2.6, request. */
export const orderRequestSchema = z.looseObject({
  customerId: guid(),
  items: z.array(z.unknown(), 'must be an array'),
  orderId: guid().optional().describe("The client's own id for the order; not in the interface"),
})

/** Section 4.4, response. */
export const orderCreatedSchema = z.object({
  orderId: z.guid(),
  status: z.enum(['pending', 'completed']),
  createdAt: z.iso.datetime(),
})

/** Section 4.5, response. */
export const orderSchema = z.object({
  orderId: z.guid(),
  status: z.enum(['pending', 'completed']),
  items: z.array(z.unknown()),
  createdAt: z.iso.datetime(),
})

/** Section 4.1, request. */
export const tokenRequestSchema = z.object({
  grant_type: z.literal('client_credentials'),
  client_id: z.string(),
  client_secret: z.string(),
})

/** Section 2.1. */
export const tokenSchema = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().positive().describe('seconds, unless the sandbox is told otherwise'),
})

/** RFC 6749, 5.2. */
export const tokenErrorSchema = z.object({ error: z.string(), error_description: z.string().optional() })

/** RFC 9457, with the code of section 7.2 where there is one. */
export const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string().optional(),
  errors: z.array(z.object({ field: z.string(), detail: z.string() })).optional(),
})

/** CloudEvents 1.0; docs/interface.md, 6, does not show the payload. */
export const orderCreatedEventSchema = z.object({
  specversion: z.literal('1.0'),
  id: z.guid(),
  source: z.literal('/api/v1/orders'),
  type: z.literal('OrderCreated'),
  subject: z.guid(),
  time: z.iso.datetime(),
  datacontenttype: z.literal('application/json'),
  data: z.object({
    orderId: z.guid(),
    customerId: z.guid(),
    status: z.literal('pending'),
    items: z.array(z.unknown()),
    createdAt: z.iso.datetime(),
  }),
})

export type Submission = z.infer<typeof submissionSchema>
export type OrderRequest = z.infer<typeof orderRequestSchema>
export type OrderCreatedEvent = z.infer<typeof orderCreatedEventSchema>

/** The five endpoints; `other` is anything else that arrives, such as a misspelt path. */
export const endpoints = ['token', 'submit', 'status', 'order', 'order_status'] as const
export type Endpoint = (typeof endpoints)[number]
