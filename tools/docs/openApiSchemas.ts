import { z } from 'zod'
import { orderRequestSchema, submissionSchema } from '../../src/sandbox/endpoints/recordSchemas.ts'
import { defaultSecret, liveSettingsSchema } from '../../src/sandbox/sandboxSettings.ts'

/* Schemas of token requests and of all answers with the default settings. */

/** @see docs/reference/interface.md, 2.3 */
const submitAnswerSchema = z.object({
  transactionId: z.string(),
  status: z.literal('accepted'),
  timestamp: z.iso.datetime(),
})

/** @see docs/reference/interface.md, 2.4 */
const transactionAnswerSchema = z.object({
  transactionId: z.string(),
  status: z.enum(['pending', 'completed', 'failed']),
  result: z.object({ customerId: z.string(), processedAt: z.iso.datetime() }).optional(),
  errorCode: z.string().optional(),
})

const orderStatus = z.enum(['pending', 'completed'])

const orderCreatedAnswerSchema = z.object({
  orderId: z.guid(),
  status: orderStatus,
  createdAt: z.iso.datetime(),
})

const orderAnswerSchema = orderCreatedAnswerSchema.extend({ items: z.array(z.unknown()) })

const tokenRequestSchema = z.object({
  grant_type: z.literal('client_credentials'),
  client_id: z.string(),
  client_secret: z.string(),
})

/** @see docs/reference/interface.md, 2.1 */
const tokenAnswerSchema = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().positive().max(31_536_000_000).describe('seconds'),
})

const tokenErrorAnswerSchema = z.object({ error: z.string(), error_description: z.string().optional() })

export const problemAnswerSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int().min(200).max(599),
  detail: z.string(),
  code: z.string().optional(),
  errors: z.array(z.object({ field: z.string(), detail: z.string() })).optional(),
})

/** CloudEvents 1.0. */
const orderCreatedEventSchema = z.object({
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
    status: z.string(),
    items: z.array(z.unknown()),
    createdAt: z.iso.datetime(),
  }),
})

const live = liveSettingsSchema.parse({})

const requests = {
  TokenRequest: tokenRequestSchema,
  DataSubmission: submissionSchema(live),
  OrderRequest: orderRequestSchema(live),
}

const answers = {
  Token: tokenAnswerSchema,
  TokenError: tokenErrorAnswerSchema,
  DataAccepted: submitAnswerSchema,
  TransactionStatus: transactionAnswerSchema,
  OrderAccepted: orderCreatedAnswerSchema,
  Order: orderAnswerSchema,
  OrderCreatedEvent: orderCreatedEventSchema,
}

export type ExampleName = keyof typeof exampleBodies

export function componentSchemas(): Record<string, unknown> {
  return {
    ...components(requests, 'input'),
    ...components({ ...answers, Problem: problemAnswerSchema }, 'output'),
  }
}

function components(named: Record<string, z.ZodType>, io: 'input' | 'output'): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(named).map(([name, schema]) => {
      const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
        target: 'draft-2020-12',
        io,
        override: ({ jsonSchema }) => loosenSchema(jsonSchema),
      })
      return [name, rest]
    }),
  )
}
/** Allows added fields in answers (docs/why/contract.md, row 9). Drops `pattern` if the schema has `format`. */
function loosenSchema(schema: Record<string, unknown>): void {
  if (schema.additionalProperties === false) delete schema.additionalProperties
  if (schema.format !== undefined) delete schema.pattern
}

const [transactionId, orderId] = ['0b6f5e0e-56a2-4c3f-8d0e-3b6f5a0c9d21', '6f1d2c3b-4a59-4e68-8f77-000000001042']
const time = '2026-11-23T09:30:00.000Z'
const order = { customerId: 'a3bb189e-8bf9-4888-9912-ace4e6543002', items: [{ sku: 'A1', quantity: 2 }] }
const created = { orderId, status: 'pending', createdAt: time }

export const exampleBodies = {
  TokenRequest: { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: defaultSecret },
  DataSubmission: { customerId: 'C1', data: { field1: 'value1', field2: 'SO-000001', total_amount: '12.50' } },
  OrderRequest: order,
  Token: { access_token: 'eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl', token_type: 'Bearer', expires_in: 3600 },
  TokenError: { error: 'invalid_client', error_description: 'Client id or secret is wrong.' },
  DataAccepted: { transactionId, status: 'accepted', timestamp: time },
  TransactionStatus: { transactionId, status: 'completed', result: { customerId: 'C1', processedAt: time } },
  OrderAccepted: created,
  Order: { ...created, items: order.items },
  OrderCreatedEvent: {
    ...{
      specversion: '1.0',
      id: transactionId,
      source: '/api/v1/orders',
      type: 'OrderCreated',
      subject: orderId,
      time,
    },
    ...{ datacontenttype: 'application/json', data: { ...created, ...order } },
  },
}

export const componentHeaders = {
  RateLimitRemaining: {
    description: 'API calls that remain in the window (docs/reference/interface.md, 8).',
    required: true,
    schema: { type: 'integer', minimum: 0 },
    example: 99,
  },
  RetryAfter: {
    description: 'Seconds after which to try again.',
    required: true,
    schema: { type: 'integer', minimum: 1, maximum: 86_400 },
    example: 20,
  },
  RetryLater: {
    description: 'Seconds after which to try again. The setting e003RetryAfterSeconds can remove this header.',
    required: false,
    schema: { type: 'integer', minimum: 1, maximum: 86_400 },
    example: 300,
  },
  Challenge: {
    description: 'How to authenticate, and the error of the token (RFC 6750, 3; RFC 6749, 5.2).',
    required: true,
    schema: { type: 'string' },
    example: 'Bearer realm="sandbox"',
  },
  NotStored: {
    description: 'A token must not be cached (RFC 6749, 5.1).',
    required: true,
    schema: { type: 'string', const: 'no-store' },
  },
}
export type HeaderName = keyof typeof componentHeaders
