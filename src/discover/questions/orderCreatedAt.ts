import { fieldOf, lineOf } from '../exchange.ts'
import { sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { orderLifeSample } from '../samples/order.ts'

export const orderCreatedAt: Question = {
  name: 'order-created-at',
  section: '2.6',
  asks: 'whether createdAt is in the answer to a read',
  requestsMax: 0,
  recordsMax: 0,
  samples: [orderLifeSample],
  needs: ['orderCustomer'],
  harmless: false,
  async run(parts) {
    const [first] = await parts.sample(orderLifeSample)
    const assumed = 'it may be'
    if (first?.answer.kind !== 'response') return unknown('nobody answered', { assumed })
    const createdAt = fieldOf(first.answer.json, 'createdAt')
    return sure(createdAt === undefined ? 'no' : 'yes', lineOf(first.answer), { assumed })
  },
}
