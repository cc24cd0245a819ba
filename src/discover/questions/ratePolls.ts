import { remainingOf } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'

export const ratePolls: Question = {
  name: 'rate-polls',
  section: '8',
  asks: 'whether a question for a transaction counts against the limit',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: false,
  async run(parts) {
    return judgeRatePolls(await parts.sample(tokensSample))
  },
}

/** Pure. */
export function judgeRatePolls({ post, poll }: Pick<Tokens, 'post' | 'poll'>): Finding {
  const assumed = 'yes'
  const [before, after] = [remainingOf(post.answer), remainingOf(poll.answer)]
  if (before === null || after === null) return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `${before} remained before a question for a transaction, ${after} after it`
  if (after === before - 1) return likely('yes', why, { assumed })
  if (after === before)
    return likely('no', why, {
      assumed,
      differs: true,
      advice: ['the daemon pays for polls all the same, which keeps any limit'],
    })
  return unknown(why, { assumed })
}
