import { remainingOf } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'

export const rateScope: Question = {
  name: 'rate-scope',
  section: '8',
  asks: 'whether the limit is one for all tokens of a client, or one for each',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeRateScope(await parts.sample(tokensSample))
  },
}

/** By whether a call with the second token goes on counting where those with the first stood. Pure. */
export function judgeRateScope({ beside, second, first }: Tokens): Finding {
  const assumed = 'client'
  const [one, two, three] = [beside.answer, second?.answer, first.answer].map((seen) =>
    seen === undefined ? null : remainingOf(seen),
  )
  if (one === undefined || two === undefined || three === undefined || one === null || two === null || three === null)
    return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `remaining: ${one} with the first token, ${two} with the second, ${three} with the first again`
  if (two < one && three < two) return likely('client', why, { assumed })
  if (two > one && three < one && three >= one - 2)
    return likely('token', why, {
      assumed,
      differs: true,
      advice: [
        'the daemon counts all tokens of the client together, which keeps any limit; with a token each, instances could have more',
      ],
    })
  return unknown(`${why}: a window may have passed meanwhile`, { assumed })
}
