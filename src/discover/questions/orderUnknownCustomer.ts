import { isSuccess, lineOf } from '../exchange.ts'
import { sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { orderSample, postOrder } from '../samples/order.ts'
import { judgeUnknownCustomer } from './unknownCustomer.ts'

/** A uuid that nobody is given. */
const nobody = '00000000-0000-4000-8000-000000000000'

export const orderUnknownCustomer: Question = {
  name: 'order-unknown-customer',
  section: '7.2',
  asks: 'what an order for a customer that there is not is answered',
  requestsMax: 1,
  recordsMax: 1,
  samples: [orderSample],
  needs: ['orderCustomer'],
  harmless: false,
  async run(parts) {
    const { answer } = await postOrder(parts, nobody)
    return isSuccess(answer)
      ? sure('taken', `${lineOf(answer)}: customers of orders are not checked when they arrive`, {
          assumed: '400 E001',
          differs: true,
        })
      : { ...judgeUnknownCustomer(answer), contract: {} }
  },
}
