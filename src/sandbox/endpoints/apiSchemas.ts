import { z } from 'zod'

/** Schemas of token requests and all answers with the default settings, for the OpenAPI document. */

/** Limited, because Postgres limits the size of index entries. */
export const idempotencyKeyLengthMax = 255

/** @see docs/reference/interface.md, 2.3 */
export const submitAnswerSchema = z.object({
  transactionId: z.string(),
  status: z.literal('accepted'),
  timestamp: z.iso.datetime(),
})

/** @see docs/reference/interface.md, 2.4 */
export const transactionAnswerSchema = z.object({
  transactionId: z.string(),
  status: z.enum(['pending', 'completed', 'failed']),
  result: z.object({ customerId: z.string(), processedAt: z.iso.datetime() }).optional(),
  errorCode: z.string().optional(),
})

const orderStatus = z.enum(['pending', 'completed'])

export const orderCreatedAnswerSchema = z.object({
  orderId: z.guid(),
  status: orderStatus,
  createdAt: z.iso.datetime(),
})

export const orderAnswerSchema = orderCreatedAnswerSchema.extend({ items: z.array(z.unknown()) })

export const tokenRequestSchema = z.object({
  grant_type: z.literal('client_credentials'),
  client_id: z.string(),
  client_secret: z.string(),
})

/** @see docs/reference/interface.md, 2.1 */
export const tokenAnswerSchema = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().positive().max(31_536_000_000).describe('seconds'),
})

export const tokenErrorAnswerSchema = z.object({ error: z.string(), error_description: z.string().optional() })

export const problemAnswerSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int().min(200).max(599),
  detail: z.string(),
  code: z.string().optional(),
  errors: z.array(z.object({ field: z.string(), detail: z.string() })).optional(),
})

/** CloudEvents 1.0. */
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
    status: z.string(),
    items: z.array(z.unknown()),
    createdAt: z.iso.datetime(),
  }),
})

export type OrderCreatedEvent = z.infer<typeof orderCreatedEventSchema>

/** Requests to any other path are `other`. */
export const endpoints = ['token', 'submit', 'status', 'order', 'order_status'] as const
export type Endpoint = (typeof endpoints)[number]
