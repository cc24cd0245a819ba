import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import { type AnsweredExchange, fieldOf, jsonOf, lineOf, nameOf, type Response, statusIn } from '../exchange.ts'
import { type Finding, found, likely, sure, unknown } from '../finding.ts'
import { addressSample } from '../firstCall.ts'
import { CannotAsk, type Parts, type Sample } from '../question.ts'
import {
  acceptedShape,
  arrivedBefore,
  explainRefused,
  follow,
  isTaken,
  type KeyShape,
  keyHeaders,
  type Observed,
  observe,
  usualHeaders,
} from '../testRecord.ts'
import { getTwice, judgeUnknownCustomer, judgeUnknownId } from './refusals.ts'

/** How orders are sent: with the key as records have it, and with an id of their own if that is demanded. */
interface OrderShape {
  key: KeyShape
  ownId: boolean
}

interface OrderControl {
  shape: OrderShape | null
  /** The last is the one that was accepted. */
  tried: readonly AnsweredExchange[]
}

/** The items of a test order as JSON text; an amount whose last digit a double would lose. */
export const itemsText = ({ given, run }: Pick<Parts, 'given' | 'run'>): string =>
  given.order === null ? `[{"sku":"outboxd${run}","quantity":1,"price":12.30}]` : JSON.stringify(given.order.items)

/** An order that the service takes (docs/reference/interface.md, 4.4), as the daemon would send it. */
export const orderSample: Sample<OrderControl> = {
  name: 'a test order',
  requestsMax: 6,
  recordsMax: 1,
  samples: [addressSample],
  async take(parts) {
    const tried: AnsweredExchange[] = []
    const { idempotencyHeader, idempotencyKeyForm } = parts.config.service
    const ours: KeyShape = { headers: [idempotencyHeader], form: idempotencyKeyForm }
    const ofRecords = await acceptedShape(parts).then(
      ({ key }) => key,
      () => ours,
    )
    const keys = [ofRecords, { ...ours, form: 'bare' } as const, { headers: usualHeaders, form: 'quoted' } as const]
    for (const key of keys)
      for (const ownId of [false, true]) {
        const exchange = await post(parts, { key, ownId }, {})
        tried.push(exchange)
        if (isTaken(exchange)) return { shape: { key, ownId }, tried }
        if (![400, 409, 422, 428].includes(exchange.answer.status) || exchange.answer.code === 'E001')
          return { shape: null, tried }
      }
    return { shape: null, tried }
  },
}

interface OrderChange {
  customerId?: string
  /** JSON text. */
  items?: string
}

async function post(parts: Parts, shape: OrderShape, change: OrderChange): Promise<AnsweredExchange> {
  const { customerId = parts.given.orderCustomer ?? '', items = itemsText(parts) } = change
  const send = () => {
    const id = shape.ownId ? `,"${resources.orders.idField}":"${randomUUID()}"` : ''
    const body = `{"customerId":${JSON.stringify(customerId)},"items":${items}${id}}`
    return parts.post(resources.orders.path, body, keyHeaders(shape.key, randomUUID()))
  }
  const exchange = await send()
  return arrivedBefore(parts, exchange) ? send() : exchange
}

/** Sends an order in the accepted shape, but for one change. @throws CannotAsk if none was accepted */
export async function postOrder(parts: Parts, change: OrderChange = {}): Promise<AnsweredExchange> {
  const { shape, tried } = await parts.sample(orderSample)
  if (shape === null) throw new CannotAsk(explainRefused(tried.at(-1)?.answer))
  return post(parts, shape, change)
}

const observeOrder = (parts: Parts, change: OrderChange): Promise<Observed> =>
  observe(
    () => postOrder(parts, change),
    () => postOrder(parts),
  )

export async function askOrder(parts: Parts): Promise<Finding> {
  const { shape, tried } = await parts.sample(orderSample)
  const first = tried.at(-1)
  if (first === undefined) return unknown('no order was sent')
  return judgeOrder(shape === null ? [first.answer] : [first.answer, (await postOrder(parts)).answer])
}

/** Pure. @param answers to equal orders */
export function judgeOrder(answers: readonly Response[]): Finding {
  const assumed = '201 with an orderId'
  const [seen] = answers
  if (seen === undefined) return unknown('no order was sent', { assumed })
  const why = answers.map(lineOf).join('; ')
  if (!isTaken({ answer: seen })) {
    const refused = explainRefused(seen)
    return unknown(refused, { assumed, cannot: `an order is answered ${nameOf(seen)}` })
  }
  if (new Set(answers.map(({ status }) => status)).size > 1)
    return unknown(`equal orders were answered differently: ${why}`, { assumed })
  const certainty = answers.length > 1 ? 'sure' : 'likely'
  if (orderIdIn(seen.json) === null)
    return found(certainty, `${seen.status} without ${resources.orders.idField}`, why, {
      assumed,
      differs: true,
      cannot: `without an ${resources.orders.idField} that can be read, each order becomes uncertain, as the service cannot be asked for it`,
    })
  return found(certainty, String(seen.status), why, {
    assumed,
    differs: seen.status !== 201,
    contract: { order_ok: String(seen.status) },
  })
}

/** The same orders, read back. Pure. @param sent JSON text */
export function judgeOrderItems(lives: readonly (readonly AnsweredExchange[])[], sent: string): Finding {
  const assumed = 'any JSON'
  const read = lives.flatMap((polls) => polls.find((each) => statusIn(each) !== null) ?? [])
  const [first] = read
  if (first === undefined) return unknown('no order could be read', { assumed })
  const texts = read.map(({ answer }) => JSON.stringify(fieldOf(answer.json, 'items')))
  const [text] = texts
  const certainty = texts.length > 1 ? 'sure' : 'likely'
  if (new Set(texts).size > 1) return unknown(`equal orders were read as ${texts.join(' and ')}`, { assumed })
  if (text === undefined)
    return found(certainty, 'none', `an order is read without items: ${lineOf(first.answer)}`, { assumed })
  if (text === sent) return found(certainty, 'as sent', 'they came back to the digit', { assumed })
  if (text === sent.replace('12.30', '12.3'))
    return found(certainty, 'as numbers', '12.30 came back as 12.3: the service keeps numbers, not digits', {
      assumed,
      advice: ['if every digit of an amount counts, have the mapping write it `as: string`'],
    })
  return found(certainty, 'otherwise', `sent ${sent}, read ${text.slice(0, 200)}`, {
    assumed,
    advice: ['ask for the shape that an item must have'],
  })
}

export async function askOrderItemShape(parts: Parts): Promise<Finding> {
  const withItems = async (items: string) => observeOrder(parts, { items })
  const [none, text, empty] = [await withItems('[]'), await withItems('["outboxd"]'), await withItems('[{}]')]
  return judgeOrderItemShape({ none, text, empty })
}

/** Beside an order with sku and quantity, which was taken. Pure. */
export function judgeOrderItemShape(
  seen: Record<'none' | 'text' | 'empty', Pick<Observed, 'taken' | 'name'>>,
): Finding {
  const { none, text, empty } = seen
  const why = `no item: ${none.name}, a text: ${text.name}, an empty object: ${empty.name}`
  const kind = text.taken ? 'any' : empty.taken ? 'objects' : 'objects with certain fields'
  const what = none.taken ? kind : kind === 'any' ? 'not empty' : `${kind}, not empty`
  const advice = what === 'any' ? [] : ['have the mapping build such items: the service refuses others']
  return sure(what, why, { assumed: 'any JSON', differs: what !== 'any', advice })
}

/** A uuid that nobody is given. */
const nobody = '00000000-0000-4000-8000-000000000000'

export async function askOrderUnknownCustomer(parts: Parts): Promise<Finding> {
  const observed = await observeOrder(parts, { customerId: nobody })
  if (observed.taken)
    return likely(
      'taken',
      `${lineOf(observed.exchange.answer)}, twice: customers of orders are not checked when they arrive`,
      {
        assumed: '400 E001',
        differs: true,
      },
    )
  return { ...judgeUnknownCustomer(observed), contract: {} }
}

export async function askUnknownOrder(parts: Parts): Promise<Finding> {
  const { answer } = await getTwice(parts, () => `${resources.orders.path}/${randomUUID()}`)
  return judgeUnknownId(answer, 'order_status_unknown')
}

const waitsMs = [0, 500, 2_500, 5_000, 10_000, 20_000]

/** Two orders, asked for until they have ended. */
export const orderLivesSample: Sample<readonly (readonly AnsweredExchange[])[]> = {
  name: 'the lives of two orders',
  requestsMax: 2 + 2 * waitsMs.length,
  recordsMax: 2,
  samples: [orderSample],
  async take(parts) {
    const orders = [await postOrder(parts), await postOrder(parts)]
    const ids = orders.flatMap(({ answer }) => orderIdIn(jsonOf(answer)) ?? [])
    if (ids.length === 0) throw new CannotAsk(`the answer to a test order has no ${resources.orders.idField}`)
    return follow(
      parts,
      ids.map((id) => `${resources.orders.path}/${encodeURIComponent(id)}`),
      waitsMs,
    )
  },
}

const orderIdIn = (json: unknown): string | null => submittedId('orders', json)
