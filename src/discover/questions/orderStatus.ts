import { unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { orderLifeSample } from '../samples/order.ts'
import { judgeStatusValues } from './statusValues.ts'

export const orderStatus: Question = {
  name: 'order-status',
  section: '3.2',
  asks: 'the statuses of an order from first to last',
  requestsMax: 0,
  recordsMax: 0,
  samples: [orderLifeSample],
  needs: ['orderCustomer'],
  harmless: false,
  async run(parts) {
    const polls = await parts.sample(orderLifeSample)
    return polls.length === 0 ? unknown('nobody asked for the order') : judgeStatusValues({ polls })
  },
}
