import { resources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import { type AnsweredExchange, type Exchange, isSuccess, jsonOf, lineOf } from '../exchange.ts'
import { CannotAsk, type Parts, type Sample } from '../question.ts'
import { noteOf } from '../testRecord.ts'
import { firstCallSample } from './calls.ts'
import { follow } from './records.ts'

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
