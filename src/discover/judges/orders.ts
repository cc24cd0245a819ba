import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import {
  type AnsweredExchange,
  type Exchange,
  fieldOf,
  isSuccess,
  jsonOf,
  lineOf,
  nameOf,
  type Response,
} from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import { CannotAsk, type Parts, type Sample } from '../question.ts'
import { firstCallSample } from '../samples/calls.ts'
import { follow, noteOf } from '../samples/records.ts'
import { judgeStatusValues } from './records.ts'
import { judgeUnknownCustomer, judgeUnknownId } from './refusals.ts'

/** Pure. */
export function judgeOrder(seen: Response): Finding {
  const assumed = '201 with an orderId'
  const line = lineOf(seen)
  if (!isSuccess(seen))
    return unknown(`no order was taken: ${line}`, { assumed, cannot: `an order is answered ${nameOf(seen)}` })
  if (orderIdIn(seen.json) === null)
    return sure(`${seen.status} without ${resources.orders.idField}`, line, {
      assumed,
      differs: true,
      cannot: `an answer without an ${resources.orders.idField} that can be read: each order becomes uncertain, as nobody can ask for it`,
    })
  const status = fieldOf(seen.json, 'status')
  const why = `${line}${status === 'pending' ? '' : `; its first status is ${JSON.stringify(status)}`}`
  return sure(String(seen.status), why, {
    assumed,
    differs: seen.status !== 201,
    contract: { order_ok: String(seen.status) },
  })
}

export async function askOrderItems(parts: Parts): Promise<Finding> {
  const [first] = await parts.sample(orderLifeSample)
  return first === undefined ? unknown('nobody asked for the order') : judgeOrderItems(first, itemsText(parts))
}

/** @param sent JSON text. Pure */
export function judgeOrderItems({ answer }: Exchange, sent: string): Finding {
  const items = answer.kind === 'response' ? fieldOf(answer.json, 'items') : undefined
  if (items === undefined) return sure('none', `an order is read without items: ${lineOf(answer)}`, { assumed })
  const text = JSON.stringify(items)
  if (text === sent) return sure('as sent', 'they came back to the digit', { assumed })
  const isRounded = text === sent.replace('12.30', '12.3')
  return isRounded
    ? sure('as numbers', '12.30 came back as 12.3: the service keeps numbers, not digits', { assumed })
    : sure('otherwise', `sent ${sent}, read ${text.slice(0, 200)}`, {
        assumed,
        advice: ['ask for the shape that an item must have'],
      })
}

const assumed = 'any JSON'

export async function askOrderItemShape(parts: Parts): Promise<Finding> {
  const usual = await parts.sample(orderSample)
  const withItems = (items: string) => postItems(parts, parts.given.orderCustomer ?? '', items)
  return judgeOrderItemShape(usual, {
    none: await withItems('[]'),
    text: await withItems('["outboxd discover"]'),
    empty: await withItems('[{}]'),
  })
}

/** Pure. @param usual an order of an item with sku, quantity, price and note */
export function judgeOrderItemShape(usual: Exchange, others: Record<'none' | 'text' | 'empty', Exchange>): Finding {
  const assumed = 'any JSON'
  const { none, text, empty } = others
  const why = Object.entries({
    'with sku and quantity': usual,
    'no item': none,
    'a text': text,
    'an empty object': empty,
  })
    .map(([what, { answer }]) => `${what}: ${nameOf(answer)}`)
    .join(', ')
  if (!isSuccess(usual.answer)) return unknown(why, { assumed, advice: ['ask for the shape that an item must have'] })
  const takes = (exchange: Exchange) => isSuccess(exchange.answer)
  const kind = takes(text) ? 'any' : takes(empty) ? 'objects' : 'objects with certain fields'
  const found = takes(none) ? kind : kind === 'any' ? 'not empty' : `${kind}, not empty`
  return sure(found, why, { assumed, differs: found !== 'any' })
}

export async function askOrderStatus(parts: Parts): Promise<Finding> {
  const polls = await parts.sample(orderLifeSample)
  return polls.length === 0 ? unknown('nobody asked for the order') : judgeStatusValues({ polls })
}

export async function askOrderCreatedAt(parts: Parts): Promise<Finding> {
  const [first] = await parts.sample(orderLifeSample)
  const assumed = 'it may be'
  if (first?.answer.kind !== 'response') return unknown('nobody answered', { assumed })
  const createdAt = fieldOf(first.answer.json, 'createdAt')
  return sure(createdAt === undefined ? 'no' : 'yes', lineOf(first.answer), { assumed })
}

export async function askOrderUnknownCustomer(parts: Parts): Promise<Finding> {
  const { answer } = await postOrder(parts, nobody)
  return isSuccess(answer)
    ? sure('taken', `${lineOf(answer)}: customers of orders are not checked when they arrive`, {
        assumed: '400 E001',
        differs: true,
      })
    : { ...judgeUnknownCustomer(answer), contract: {} }
}

/** A uuid that nobody is given. */
const nobody = '00000000-0000-4000-8000-000000000000'

export async function askUnknownOrder(parts: Parts): Promise<Finding> {
  const { answer } = await parts.get(`${resources.orders.path}/${randomUUID()}`)
  return judgeUnknownId(answer, 'order_status_unknown')
}

/** The items of a test order as JSON text; an amount whose last digit a double would lose. */
export const itemsText = (parts: Pick<Parts, 'run'>): string =>
  `[{"sku":"outboxd-discover","quantity":1,"price":12.30,"note":${JSON.stringify(noteOf(parts, 'an order'))}}]`

/** A test order (docs/interface.md, 4.4). */
export const orderSample: Sample<AnsweredExchange> = {
  name: 'a test order',
  requestsMax: 1,
  recordsMax: 1,
  samples: [firstCallSample],
  async take(parts) {
    return postOrder(parts, parts.given.orderCustomer ?? '')
  },
}

export const postOrder = (parts: Parts, customerId: string): Promise<AnsweredExchange> =>
  postItems(parts, customerId, itemsText(parts))

/** @param items JSON text */
export const postItems = (parts: Parts, customerId: string, items: string): Promise<AnsweredExchange> =>
  parts.post(resources.orders.path, `{"customerId":${JSON.stringify(customerId)},"items":${items}}`)

const waitsMs = [0, 500, 2_500, 5_000, 10_000]

/** The order, asked for until it has ended. */
export const orderLifeSample: Sample<readonly Exchange[]> = {
  name: 'the life of an order',
  requestsMax: waitsMs.length,
  recordsMax: 0,
  samples: [orderSample],
  async take(parts) {
    const { answer } = await parts.sample(orderSample)
    const id = isSuccess(answer) ? orderIdIn(jsonOf(answer)) : null
    if (id === null) throw new CannotAsk(`no test order was taken: ${lineOf(answer)}`)
    return follow(parts, `${resources.orders.path}/${encodeURIComponent(id)}`, waitsMs)
  },
}

/** The id that an answer gives an order, as the daemon would read it. */
export const orderIdIn = (json: unknown): string | null => submittedId('orders', json)
