/** Requests to any other path are `other`. */
export const endpoints = ['token', 'submit', 'status', 'order', 'order_status'] as const
export type Endpoint = (typeof endpoints)[number]

/** Limited, because Postgres limits the size of index entries. */
export const idempotencyKeyLengthMax = 255

/** CloudEvents 1.0. @see docs/reference/interface.md, 6 */
export interface OrderCreatedEvent {
  specversion: '1.0'
  id: string
  source: '/api/v1/orders'
  type: 'OrderCreated'
  subject: string
  time: string
  datacontenttype: 'application/json'
  data: { orderId: string; customerId: string; status: string; items: unknown[]; createdAt: string }
}
