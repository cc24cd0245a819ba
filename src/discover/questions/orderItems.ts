import { type Exchange, fieldOf, lineOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { itemsText, orderLifeSample } from '../samples/order.ts'

export const orderItems: Question = {
  name: 'order-items',
  section: '2.6',
  asks: 'whether an order’s items come back as they were sent, to the digit',
  requestsMax: 0,
  recordsMax: 0,
  samples: [orderLifeSample],
  needs: ['orderCustomer'],
  harmless: false,
  async run(parts) {
    const [first] = await parts.sample(orderLifeSample)
    return first === undefined ? unknown('nobody asked for the order') : judgeOrderItems(first, itemsText(parts))
  },
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
