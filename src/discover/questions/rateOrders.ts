import { remainingOf } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'

export const rateOrders: Question = {
  name: 'rate-orders',
  section: '8',
  asks: 'whether data and orders share a limit',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: false,
  async run(parts) {
    return judgeRateOrders(await parts.sample(tokensSample))
  },
}

/** Pure. */
export function judgeRateOrders({ poll, order }: Pick<Tokens, 'poll' | 'order'>): Finding {
  const assumed = 'shared'
  const [data, orders] = [remainingOf(poll.answer), remainingOf(order.answer)]
  if (data === null || orders === null) return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `${data} remained after a question for a transaction, ${orders} after an order that followed it`
  if (orders === data - 1) return likely('shared', why, { assumed })
  if (orders >= data)
    return likely('apart', why, {
      assumed,
      differs: true,
      advice: ['the daemon counts both halves together, which keeps any limit'],
    })
  return unknown(why, { assumed })
}
