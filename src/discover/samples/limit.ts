import { type Exchange, remainingOf } from '../exchange.ts'
import type { Sample } from '../question.ts'
import { firstCallSample } from './firstCall.ts'
import { emptyPost } from './window.ts'

const burstMax = 130
/** Beyond what the service says remains. */
const beyondMax = 5

/** POSTs of an empty body until one is refused because of the limit. */
export const limitSample: Sample<readonly Exchange[]> = {
  name: 'POSTs of an empty body until the limit is reached',
  requestsMax: burstMax,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const burst: Exchange[] = []
    const isOver = () => statusOf(burst.at(-1)) === 429
    let remaining = remainingOf((await parts.sample(firstCallSample)).first.answer) ?? parts.config.rateLimit.requests
    let beyond = 0
    while (burst.length < burstMax && beyond < beyondMax && !isOver()) {
      beyond += remaining <= 0 ? 1 : 0
      const next = await emptyPost(parts, true)
      burst.push(next)
      remaining = remainingOf(next.answer) ?? remaining - 1
    }
    return burst
  },
}

const statusOf = (exchange: Exchange | undefined) =>
  exchange?.answer.kind === 'response' ? exchange.answer.status : null
