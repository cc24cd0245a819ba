import { z } from 'zod'
import type { Exchange, Outcome, SandboxParts } from '../exchange.ts'
import { advanceScriptedStatus, type ProcessedRecordRef, planProcessing } from '../processing/processing.ts'
import { formatIsoTime, toServiceTimeUs } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { type AppliedRequest, findOrder, findTransaction, type StoredRecord } from '../storage/findStored.ts'
import {
  answerUsedIdempotencyKey,
  checkAndParseRecordRequest,
  refuseDuplicate,
  refuseUnknownCustomer,
  refuseWhileDown,
  unknownIdAnswer,
} from './apiRefusals.ts'
import type { OrderCreatedEvent } from './endpoints.ts'
import { parseExactJson } from './parseExactJson.ts'
import { type Answer, refusalAnswer, successAnswer } from './problemAnswer.ts'
import { type OrderRequest, orderRequestSchema, submissionSchema } from './recordSchemas.ts'

/** POST /api/v1/data. @see docs/reference/interface.md, 4.2 */
export async function submitData(parts: SandboxParts, exchange: Exchange): Promise<Outcome> {
  const { client } = exchange
  const live = parts.liveSettingsOf(client)
  const read = checkAndParseRecordRequest(parts, exchange, submissionSchema(live))
  if (read.kind === 'invalid') return read
  const { customerId, data } = read.value
  const ownId = takesOwnIds(live) ? read.value.transactionId : undefined
  const accepted = (id: string | null, us: number) =>
    successAnswer({ transactionId: id, status: 'accepted', timestamp: formatIsoTime(toServiceTimeUs(us, live)) })
  const refusal = await refuse(parts, exchange, {
    of: 'transaction',
    ownId,
    customerId,
    replay: (before) => accepted(before.transactionId, before.appliedUs),
  })
  if (refusal) return { answer: refusal }
  const sinceUs = parts.clock.nowUs()
  const position = parts.random.nextPosition(client)
  const id = ownId ?? inForm(parts.random.id('transaction', client, position), live.transactionIdForm)
  const course = planProcessing(parts, client, position, sinceUs, data.field2)
  const statuses = parts.scripts.statuses(exchange)
  const effect = { kind: 'transaction' as const, id, customerId, sinceUs, position, statuses, ...course }
  return { answer: accepted(id, sinceUs), effect }
}

/** GET /api/v1/data/{transactionId}. @see docs/reference/interface.md, 4.3 */
export function readTransaction(parts: SandboxParts, exchange: Exchange): Promise<Outcome> {
  const live = parts.liveSettingsOf(exchange.client)
  return readOne(parts, exchange, 'transaction', findTransaction, (found, nowUs) => {
    const { id, sinceUs, doneUs, held, outcome, errorCode } = found
    if (held || nowUs < doneUs) {
      const isEarly = nowUs < (sinceUs + doneUs) / 2
      return { transactionId: id, status: isEarly ? live.firstStatus : 'pending' }
    }
    const code = errorCode !== null && live.errorCodeShown ? { errorCode } : {}
    const result = { customerId: found.customerId, processedAt: formatIsoTime(toServiceTimeUs(doneUs, live)) }
    const shapes = { object: result, absent: undefined, text: JSON.stringify(result), list: [result] }
    return { transactionId: id, status: outcome, result: shapes[live.resultShape], ...code }
  })
}

/** POST /api/v1/orders. @see docs/reference/interface.md, 4.4 and 6 */
export async function createOrder(parts: SandboxParts, exchange: Exchange): Promise<Outcome> {
  const { client } = exchange
  const live = parts.liveSettingsOf(client)
  const read = checkAndParseRecordRequest(parts, exchange, orderRequestSchema(live))
  if (read.kind === 'invalid') return read
  const order = read.value
  const { customerId } = order
  const ownId = takesOwnIds(live) ? order.orderId?.toLowerCase() : undefined
  const created = (orderId: string | null, us: number) =>
    successAnswer({ orderId, status: live.orderFirstStatus, createdAt: formatIsoTime(toServiceTimeUs(us, live)) }, 201)
  const refusal = await refuse(parts, exchange, {
    of: 'order',
    ownId,
    customerId,
    replay: (before) => created(before.orderId, before.appliedUs),
  })
  if (refusal) return { answer: refusal }
  const sinceUs = parts.clock.nowUs()
  const position = parts.random.nextPosition(client)
  const id = ownId ?? parts.random.id('order', client, position)
  const { doneUs } = planProcessing(parts, client, position, sinceUs, '')
  const event = orderCreated(parts.random.id('event', client, position), id, order, sinceUs, live)
  const statuses = parts.scripts.statuses(exchange)
  const items = JSON.stringify(order.items)
  const effect = { kind: 'order' as const, id, customerId, sinceUs, doneUs, position, statuses, items, event }
  return { answer: created(id, sinceUs), effect }
}

/** GET /api/v1/orders/{orderId}. @see docs/reference/interface.md, 4.5 */
export function readOrder(parts: SandboxParts, exchange: Exchange): Promise<Outcome> {
  const live = parts.liveSettingsOf(exchange.client)
  return readOne(parts, exchange, 'order', findOrder, (found, nowUs) => {
    const { id, items, sinceUs, doneUs, held } = found
    const status = held || nowUs < doneUs ? live.orderFirstStatus : live.orderLastStatus
    const createdAt = live.createdAtOnRead ? { createdAt: formatIsoTime(toServiceTimeUs(sinceUs, live)) } : {}
    return { orderId: id, status, items: parseExactJson(items), ...createdAt }
  })
}

function takesOwnIds({ ownIds }: LiveSettings): boolean {
  return ownIds === 'taken' || ownIds === 'required'
}

interface Sent {
  of: ProcessedRecordRef['of']
  ownId: string | undefined
  customerId: string
  replay: (before: AppliedRequest) => Answer
}

async function refuse(
  parts: SandboxParts,
  exchange: Exchange,
  { of, ownId, customerId, replay }: Sent,
): Promise<Answer | undefined> {
  const { client } = exchange
  const refusal =
    refuseUnknownCustomer(parts, customerId, client) ?? (await answerUsedIdempotencyKey(parts, exchange, replay))
  if (refusal || ownId === undefined) return refusal
  const find = of === 'order' ? findOrder : findTransaction
  return (await find(parts.pool, client, ownId)) && refuseDuplicate(parts, `the ${of} id ${ownId}`, client)
}

type Find<S> = (pool: SandboxParts['pool'], client: string, id: string) => Promise<S | undefined>

async function readOne<S extends StoredRecord>(
  parts: SandboxParts,
  { id, client }: Exchange,
  of: ProcessedRecordRef['of'],
  find: Find<S>,
  bodyOf: (found: S, nowUs: number) => unknown,
): Promise<Outcome> {
  const down = refuseWhileDown(parts, client)
  if (down) return { answer: down }
  if (of === 'order' && !z.guid().safeParse(id).success)
    return { answer: refusalAnswer(400, 'orderId: must be a uuid') }
  const visibleAfterUs = parts.liveSettingsOf(client).visibleAfterSeconds * 1_000_000
  const findVisible = async () => {
    const found = await find(parts.pool, client, id)
    return found && parts.clock.nowUs() >= found.sinceUs + visibleAfterUs ? found : undefined
  }
  const found = await findVisible()
  if (found === undefined) return { answer: unknownIdAnswer(parts, of, id, client) }
  const nowUs = parts.clock.nowUs()
  if (!found.held || found.statuses === null) return { answer: successAnswer(bodyOf(found, nowUs)) }
  const fault = await advanceScriptedStatus(parts, { of, id, client }, found.statuses)
  return { answer: successAnswer(bodyOf((await findVisible()) ?? found, parts.clock.nowUs())), fault }
}

function inForm(uuid: string, form: LiveSettings['transactionIdForm']): string {
  switch (form) {
    case 'uuid':
      return uuid
    case 'digits':
      return BigInt(`0x${uuid.replaceAll('-', '').slice(0, 24)}`).toString()
    case 'odd':
      return `tx/${uuid.slice(0, 18)} +ü%2F?#`
    default:
      return form satisfies never
  }
}

/** @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md */
function orderCreated(
  id: string,
  orderId: string,
  { customerId, items }: OrderRequest,
  us: number,
  live: LiveSettings,
): OrderCreatedEvent {
  const time = formatIsoTime(toServiceTimeUs(us, live))
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
