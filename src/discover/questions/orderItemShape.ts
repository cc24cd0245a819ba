import { type Exchange, isSuccess, nameOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { orderSample, postItems } from '../samples/order.ts'

export const orderItemShape: Question = {
  name: 'order-item-shape',
  section: '2.6',
  asks: 'what an order’s items must be: none, texts, objects without fields',
  requestsMax: 3,
  recordsMax: 3,
  samples: [orderSample],
  needs: ['orderCustomer'],
  harmless: false,
  async run(parts) {
    const usual = await parts.sample(orderSample)
    const withItems = (items: string) => postItems(parts, parts.given.orderCustomer ?? '', items)
    return judgeOrderItemShape(usual, {
      none: await withItems('[]'),
      text: await withItems('["outboxd discover"]'),
      empty: await withItems('[{}]'),
    })
  },
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
