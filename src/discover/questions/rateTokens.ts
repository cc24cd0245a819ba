import { remainingOf } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'
import { judgeRateOrders } from './rateOrders.ts'
import { judgeRateScope } from './rateScope.ts'

export const rateTokens: Question = {
  name: 'rate-tokens',
  section: '8',
  asks: 'whether a token request counts against the limit',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: false,
  async run(parts) {
    return judgeRateTokens(await parts.sample(tokensSample))
  },
}

/** By how much less remains after it than the calls before and after it explain. Pure. */
export function judgeRateTokens(tokens: Tokens): Finding {
  const assumed = 'no; they are paid for all the same'
  const scope = judgeRateScope(tokens)
  if (scope.found === null) return unknown(scope.why, { assumed })
  if (scope.found === 'token')
    return unknown('each token has a limit of its own, and a request for one comes before it', { assumed })
  const isShared = judgeRateOrders(tokens).found === 'shared'
  const before = remainingOf((isShared ? tokens.order : tokens.poll).answer)
  const after = tokens.second && remainingOf(tokens.second.answer)
  const why = `${before} remained before a token request, ${after} after the POST that followed it`
  const less = before === null || after === null ? Number.NaN : before - after
  if (less === 1) return likely('no', why, { assumed })
  if (less === 2) return likely('yes', why, { assumed })
  return unknown(why, { assumed })
}
