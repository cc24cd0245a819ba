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
  harmless: true,
  async run(parts) {
    return judgeRateOrders(await parts.sample(tokensSample))
  },
}

/** Pure. */
export function judgeRateOrders({ before, beside }: Pick<Tokens, 'before' | 'beside'>): Finding {
  const assumed = 'shared'
  const [data, order] = [remainingOf(before.answer), remainingOf(beside.answer)]
  if (data === null || order === null) return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `${data} remained after a question for a transaction, ${order} after one for an order that followed it`
  if (order === data - 1) return likely('shared', why, { assumed })
  if (order > data)
    return likely('separate', why, {
      assumed,
      differs: true,
      advice: ['the daemon counts both halves together, which keeps any limit'],
    })
  return unknown(why, { assumed })
}
