import { remainingOf } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'

export const rateScope: Question = {
  name: 'rate-scope',
  section: '8',
  asks: 'whether the limit is one for all tokens of a client (or for its address), or one for each token',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: false,
  async run(parts) {
    return judgeRateScope(await parts.sample(tokensSample))
  },
}

/** By whether a POST with the second token goes on counting where those with the first stood. Pure. */
export function judgeRateScope({ poll, second, first }: Pick<Tokens, 'poll' | 'second' | 'first'>): Finding {
  const assumed = 'client'
  const [before, other, again] = [poll.answer, second?.answer, first.answer].map((seen) =>
    seen === undefined ? null : remainingOf(seen),
  )
  if (typeof before !== 'number' || typeof other !== 'number' || typeof again !== 'number')
    return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `remaining: ${before} with the first token, ${other} with the second, ${again} with the first again`
  if (other < before && again === other - 1)
    return likely('client', `${why}; one for the address would look the same`, { assumed })
  if (other >= before && again < before)
    return likely('token', why, {
      assumed,
      differs: true,
      advice: [
        'the daemon counts all tokens of the client together, which keeps any limit; with a token each, instances could have more',
      ],
    })
  return unknown(`${why}: a window may have passed meanwhile`, { assumed })
}
