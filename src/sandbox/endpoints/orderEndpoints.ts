import { z } from 'zod'
import type { Exchange, Outcome, Parts } from '../exchange.ts'
import { decideCourse, pollCourse } from '../processing/course.ts'
import { isoTime, toldUs } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { findOrder, type StoredOrder } from '../storage/findStored.ts'
import { downAnswer, duplicate, readBody, unknownCustomer, unknownId, usedBefore } from './apiRefusals.ts'
import { digitsOf, holdsNul, parseExactly, writtenDigits } from './parseExactly.ts'
import { type Answer, ok, problem } from './problemAnswer.ts'
import { type OrderRequest, orderRequestSchema } from './recordSchemas.ts'
import type { OrderCreatedEvent } from './requestSchemas.ts'

/** POST /api/v1/orders. @see docs/interface.md, 4.4 and 6 */
export async function createOrder(parts: Parts, exchange: Exchange, client: string): Promise<Outcome> {
  const down = downAnswer(parts, client)
  if (down) return { answer: down }
  const live = parts.live(client)
  const read = readBody(parts, exchange, client, orderRequestSchema(live))
  if (read.kind === 'invalid') return { answer: read.answer }
  const order = read.value
  const ownId = live.ownIds === 'taken' ? order.orderId : undefined
  const created = (id: string, us: number) => createdAnswer(id, us, live)
  const items = writeItems(order.items)
  const refusal =
    unkeepable(items, parts.bodyLimitBytes, live) ??
    unknownCustomer(parts, order.customerId, client) ??
    (await usedBefore(parts, exchange, client, (before) => created(before.orderId ?? '', before.appliedUs))) ??
    (ownId === undefined ? undefined : await takenId(parts, exchange, client, ownId))
  if (refusal) return { answer: refusal }
  const createdUs = parts.clock.nowUs()
  const position = parts.draws.next(client)
  const id = ownId?.toLowerCase() ?? parts.draws.id('order', client, position)
  const { doneUs } = decideCourse(parts, client, position, createdUs, '')
  const event = orderCreated(parts.draws.id('event', client, position), id, order, createdUs, live)
  const { customerId } = order
  const statuses = parts.scripts.statuses(exchange, client)
  const effect = {
    kind: 'order' as const,
    id,
    customerId,
    items: items.text,
    createdUs,
    position,
    statuses,
    doneUs,
    event,
  }
  return { answer: created(id, createdUs), effect }
}

/** GET /api/v1/orders/{orderId}. @see docs/interface.md, 4.5 */
export async function readOrder(parts: Parts, exchange: Exchange, client: string): Promise<Outcome> {
  const down = downAnswer(parts, client)
  if (down) return { answer: down }
  if (!z.guid().safeParse(exchange.id).success) return { answer: problem(400, 'orderId: must be a uuid') }
  const polled = await pollCourse(parts, { of: 'order', id: exchange.id, client }, () =>
    findOrder(parts.pool, client, exchange.id),
  )
  if (polled === undefined) return { answer: unknownId(parts, 'order', exchange.id, client) }
  return { answer: ok(orderAt(polled.found, polled.nowUs, parts.live(client))), fault: polled.fault }
}

function orderAt({ id, items, createdUs, doneUs, held }: StoredOrder, nowUs: number, live: LiveSettings) {
  const status = held || nowUs < doneUs ? live.orderFirstStatus : live.orderLastStatus
  const createdAt = live.createdAtOnRead ? { createdAt: isoTime(toldUs(createdUs, live)) } : {}
  return { orderId: id, status, items: parseExactly(items), ...createdAt }
}

/** An id is the client's own: another may choose the same. */
async function takenId(parts: Parts, exchange: Exchange, client: string, orderId: string) {
  await exchange.lock(`order ${client} ${orderId.toLowerCase()}`)
  const taken = await findOrder(parts.pool, client, orderId)
  return taken && duplicate(parts, `the order id ${orderId}`, client)
}

function createdAnswer(orderId: string, us: number, live: LiveSettings) {
  return ok({ orderId, status: live.orderFirstStatus, createdAt: isoTime(toldUs(us, live)) }, 201)
}

interface Items {
  /** JSON, its numbers as they came. */
  text: string
  /** How many bytes it has once its numbers are written out without exponents, as the queue keeps and gives them. */
  writtenOutBytes: number
}

function writeItems(items: unknown[]): Items {
  let growth = 0
  const text = JSON.stringify(items, (_key, value: unknown) => {
    const digits = digitsOf(value)
    if (digits !== undefined && /e/i.test(digits)) growth += writtenDigits(digits) - digits.length
    return value
  })
  return { text, writtenOutBytes: Buffer.byteLength(text) + growth }
}

/** What Postgres's jsonb, in which the queue keeps the event, could not keep or no consumer could read. */
function unkeepable(
  { text, writtenOutBytes }: Items,
  bodyLimitBytes: number,
  { tooLargeStatus }: LiveSettings,
): Answer | undefined {
  if (holdsNul(text)) return problem(400, 'items: must not contain the character U+0000')
  if (writtenOutBytes <= bodyLimitBytes) return undefined
  return problem(
    tooLargeStatus,
    `items: must have at most ${bodyLimitBytes} bytes with numbers written out without exponents.`,
  )
}

/** @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md */
function orderCreated(
  id: string,
  orderId: string,
  { customerId, items }: OrderRequest,
  us: number,
  live: LiveSettings,
): OrderCreatedEvent {
  const time = isoTime(toldUs(us, live))
  return {
    specversion: '1.0',
    id,
    source: '/api/v1/orders',
    type: 'OrderCreated',
    subject: orderId,
    time,
    datacontenttype: 'application/json',
    data: { orderId, customerId, status: live.orderFirstStatus, items, createdAt: time },
  }
}
