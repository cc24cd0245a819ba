import { resources } from '../../resources.ts'
import { fieldOf, isSuccess, lineOf, nameOf, type Response } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { orderIdIn, orderSample } from '../samples/order.ts'

export const order: Question = {
  name: 'order',
  section: '2.6',
  asks: 'how an order is taken: status, id, and what else its answer has',
  requestsMax: 0,
  recordsMax: 0,
  samples: [orderSample],
  needs: ['orderCustomer'],
  harmless: false,
  async run(parts) {
    return judgeOrder((await parts.sample(orderSample)).answer)
  },
}

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
