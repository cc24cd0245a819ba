import { z } from 'zod'
import { errorShapes } from '../endpoints/presentAnswer.ts'
import { orderRequestSchema, submissionSchema } from '../endpoints/recordSchemas.ts'
import * as wire from '../endpoints/requestSchemas.ts'
import type { LiveSettings } from '../sandboxSettings.ts'

/** The schemas and headers of the OpenAPI document. The same schemas check requests and type answers. */

const requests = (live: LiveSettings) => ({
  TokenRequest: wire.tokenRequestSchema,
  DataSubmission: submissionSchema(live),
  OrderRequest: orderRequestSchema(live),
})

const answers = (live: LiveSettings) => ({
  Token: wire.tokenSchema(live),
  TokenError: wire.tokenErrorSchema,
  DataAccepted: wire.acceptedSchema,
  TransactionStatus: wire.transactionSchema(live),
  OrderAccepted: wire.orderCreatedSchema(live),
  Order: wire.orderSchema(live),
  Problem: errorShapes[live.errorShape].schema,
  OrderCreatedEvent: wire.orderCreatedEventSchema,
  ...(live.unauthorizedShape === 'same' ? {} : { Unauthorized: errorShapes[live.unauthorizedShape].schema }),
})

export type SchemaName = keyof ReturnType<typeof requests> | keyof ReturnType<typeof answers>

/** Component schemas by name; requests as they are sent, all others as they are answered. */
export function componentSchemas(live: LiveSettings): Record<string, unknown> {
  return { ...components(requests(live), 'input'), ...components(answers(live), 'output') }
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

/** Component headers by name. A header that the settings can leave out is not required then. */
export const componentHeaders = (live: LiveSettings) => ({
  RateLimitRemaining: {
    description: 'How many more API calls the window would take now (docs/interface.md, 8).',
    required: live.remainingHeader === 'all',
    schema: { type: 'integer', minimum: 0 },
  },
  RetryAfter: {
    description: 'When it is worth asking again: whole seconds, or a date.',
    required: live.retryAfterForm !== 'none',
    schema: retryAfter(live),
  },
  RetryLater: {
    description: 'The same; settable, and so may be missing.',
    required: false,
    schema: retryAfter(live),
  },
  Challenge: {
    description: 'How to authenticate, and what was wrong with the token (RFC 6750, 3; RFC 6749, 5.2).',
    required: live.wwwAuthenticate !== 'none',
    schema: { type: 'string' },
  },
  NotStored: {
    description: 'A token must not be cached (RFC 6749, 5.1).',
    required: true,
    schema: { type: 'string', const: 'no-store' },
  },
})
export type HeaderName = keyof ReturnType<typeof componentHeaders>

function retryAfter({ retryAfterForm }: LiveSettings) {
  return retryAfterForm === 'date' ? { type: 'string' } : { type: 'integer', minimum: 1 }
}
