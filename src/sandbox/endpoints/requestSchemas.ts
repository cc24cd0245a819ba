import { z } from 'zod'
import type { LiveSettings } from '../sandboxSettings.ts'

/** Schemas of token requests and all answers, also for the OpenAPI document. */

/** Postgres bounds index entries. */
export const idempotencyKeyMax = 255

/** Section 2.3. */
export const submitAcceptedSchema = z.object({
  transactionId: z.string(),
  status: z.literal('accepted'),
  timestamp: z.iso.datetime(),
})

/** Section 2.4. */
export function transactionSchema({ firstStatus, resultShape }: LiveSettings) {
  const result = z.object({ customerId: z.string(), processedAt: z.iso.datetime() })
  const shapes = { object: result, absent: z.never(), text: z.string(), list: z.array(result) }
  return z.object({
    transactionId: z.string(),
    status: z.enum([...new Set([firstStatus, 'pending', 'completed', 'failed'])]),
    result: shapes[resultShape].optional(),
    errorCode: z.string().optional(),
  })
}

export function orderCreatedSchema(live: LiveSettings) {
  return z.object({ orderId: z.guid(), status: orderStatus(live), createdAt: z.iso.datetime() })
}

export function orderSchema(live: LiveSettings) {
  const createdAt = z.iso.datetime()
  return z.object({
    orderId: z.guid(),
    status: orderStatus(live),
    items: z.array(z.unknown()),
    createdAt: live.createdAtOnRead ? createdAt : createdAt.optional(),
  })
}

function orderStatus({ orderFirstStatus, orderLastStatus }: LiveSettings) {
  return z.enum([...new Set([orderFirstStatus, orderLastStatus])])
}

export const tokenRequestSchema = z.object({
  grant_type: z.literal('client_credentials'),
  client_id: z.string(),
  client_secret: z.string(),
})

/** Section 2.1. */
export function tokenSchema({ expiresInForm, expiresInUnit, tokenType }: LiveSettings) {
  const number = z.int().positive().max(31_536_000_000).describe(expiresInUnit)
  const forms = { number, text: z.string().regex(/^\d+$/).describe(expiresInUnit), absent: z.never().optional() }
  return z.object({ access_token: z.string(), token_type: z.literal(tokenType), expires_in: forms[expiresInForm] })
}

export const tokenErrorSchema = z.object({ error: z.string(), error_description: z.string().optional() })

export const problemSchema = z.looseObject({
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
