import { z } from 'zod'
import { errorShapes } from '../endpoints/applyAnswerSettings.ts'
import { orderRequestSchema, submissionSchema } from '../endpoints/recordSchemas.ts'
import * as wire from '../endpoints/requestSchemas.ts'
import { defaultSecret, type LiveSettings } from '../sandboxSettings.ts'

const requests = (live: LiveSettings) => ({
  TokenRequest: wire.tokenRequestSchema,
  DataSubmission: submissionSchema(live),
  OrderRequest: orderRequestSchema(live),
})

const answers = (live: LiveSettings) => ({
  Token: wire.tokenSchema(live),
  TokenError: wire.tokenErrorSchema,
  DataAccepted: wire.submitAcceptedSchema,
  TransactionStatus: wire.transactionSchema(live),
  OrderAccepted: wire.orderCreatedSchema(live),
  Order: wire.orderSchema(live),
  Problem: errorShapes[live.errorShape].schema,
  OrderCreatedEvent: wire.orderCreatedEventSchema,
  ...(live.unauthorizedShape === 'same' ? {} : { Unauthorized: errorShapes[live.unauthorizedShape].schema }),
})

export type SchemaName = keyof ReturnType<typeof requests> | keyof ReturnType<typeof answers>

export function componentSchemas(live: LiveSettings): Record<string, unknown> {
  return { ...components(requests(live), 'input'), ...components(answers(live), 'output') }
}

function components(named: Record<string, z.ZodType>, io: 'input' | 'output'): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(named).map(([name, schema]) => {
      const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
        target: 'draft-2020-12',
        io,
        override: ({ jsonSchema }) => loosen(jsonSchema),
      })
      return [name, rest]
    }),
  )
}

/** Leaves answers open for added fields (docs/why/contract.md, row 9), and drops a pattern if there is a format. */
function loosen(schema: Record<string, unknown>): void {
  if (schema.additionalProperties === false) delete schema.additionalProperties
  if (schema.format !== undefined) delete schema.pattern
}

const [transactionId, orderId] = ['0b6f5e0e-56a2-4c3f-8d0e-3b6f5a0c9d21', '6f1d2c3b-4a59-4e68-8f77-000000001042']
const time = '2026-11-23T09:30:00.000Z'
const order = { customerId: 'a3bb189e-8bf9-4888-9912-ace4e6543002', items: [{ sku: 'A1', quantity: 2 }] }
const created = { orderId, status: 'pending', createdAt: time }

const examples: Partial<Record<SchemaName, unknown>> = {
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

export function exampleOf(live: LiveSettings, name: SchemaName): { example?: unknown } {
  const schemas: Partial<Record<SchemaName, z.ZodType>> = { ...requests(live), ...answers(live) }
  const example = examples[name]
  return schemas[name]?.safeParse(example).success ? { example } : {}
}

export const componentHeaders = (live: LiveSettings) => ({
  RateLimitRemaining: {
    description: 'API calls that remain in the window (docs/reference/interface.md, 8).',
    required: live.remainingHeader === 'all',
    schema: { type: 'integer', minimum: 0 },
    example: 99,
  },
  RetryAfter: {
    description: 'When to try again: whole seconds, or a date.',
    required: live.retryAfterForm !== 'none',
    ...retryAfter(live, 20),
  },
  RetryLater: {
    description: 'When to try again; may be missing (settable).',
    required: false,
    ...retryAfter(live, live.e003RetryAfterSeconds || 300),
  },
  Challenge: {
    description: 'How to authenticate, and the error of the token (RFC 6750, 3; RFC 6749, 5.2).',
    required: live.wwwAuthenticate !== 'none',
    schema: { type: 'string' },
    example: 'Bearer realm="sandbox"',
  },
  NotStored: {
    description: 'A token must not be cached (RFC 6749, 5.1).',
    required: true,
    schema: { type: 'string', const: 'no-store' },
  },
})
export type HeaderName = keyof ReturnType<typeof componentHeaders>

function retryAfter({ retryAfterForm }: LiveSettings, seconds: number) {
  return retryAfterForm === 'date'
    ? { schema: { type: 'string' }, example: 'Mon, 23 Nov 2026 09:31:00 GMT' }
    : { schema: { type: 'integer', minimum: 1, maximum: 86_400 }, example: seconds }
}
