import { z } from 'zod'
import * as wire from '../endpoints/requestSchemas.ts'

/** The schemas and headers of the OpenAPI document, made from the very schemas that check requests and type answers. */

const requests = {
  TokenRequest: wire.tokenRequestSchema,
  DataSubmission: wire.submissionSchema,
  OrderRequest: wire.orderRequestSchema,
}

const answers = {
  Token: wire.tokenSchema,
  TokenError: wire.tokenErrorSchema,
  DataAccepted: wire.acceptedSchema,
  TransactionStatus: wire.transactionSchema,
  OrderAccepted: wire.orderCreatedSchema,
  Order: wire.orderSchema,
  Problem: wire.problemSchema,
  OrderCreatedEvent: wire.orderCreatedEventSchema,
}

export type SchemaName = keyof typeof requests | keyof typeof answers

/** Component schemas by name; requests as they are sent, all others as they are answered. */
export function componentSchemas(): Record<string, unknown> {
  return { ...components(requests, 'input'), ...components(answers, 'output') }
}

function components(named: Record<string, z.ZodType>, io: 'input' | 'output'): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(named).map(([name, schema]) => {
      const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
        target: 'draft-2020-12',
        io,
        override: ({ jsonSchema }) => leaveOpen(jsonSchema),
      })
      return [name, rest]
    }),
  )
}

/** Fields may be added to answers (docs/contract.md, row 9): a client must not refuse those that it does not know. */
function leaveOpen(schema: Record<string, unknown>): void {
  if (schema.additionalProperties === false) delete schema.additionalProperties
}

/** Component headers by name. */
export const componentHeaders = {
  RateLimitRemaining: {
    description: 'How many more API calls the window would take now (docs/interface.md, 8).',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  RetryAfter: {
    description: 'Whole seconds until it is worth asking again.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
  RetryLater: {
    description: 'Whole seconds until it is worth asking again; settable, and so may be missing.',
    schema: { type: 'integer', minimum: 1 },
  },
  Challenge: {
    description: 'How to authenticate, and what was wrong with the token (RFC 6750, 3; RFC 6749, 5.2).',
    required: true,
    schema: { type: 'string' },
  },
  NotStored: {
    description: 'A token must not be cached (RFC 6749, 5.1).',
    required: true,
    schema: { type: 'string', const: 'no-store' },
  },
} as const
