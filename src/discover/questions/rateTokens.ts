import { remainingOf } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'
import { judgeRateScope } from './rateScope.ts'

export const rateTokens: Question = {
  name: 'rate-tokens',
  section: '8',
  asks: 'whether a token request counts against the limit',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeRateTokens(await parts.sample(tokensSample))
  },
}

/** Of a limit for all tokens of a client; that of a single token cannot count what there was before it. Pure. */
export function judgeRateTokens(tokens: Tokens): Finding {
  const assumed = 'no; they are paid for all the same'
  const scope = judgeRateScope(tokens)
  if (scope.found === 'token') return likely('no', 'each token has a limit of its own', { assumed })
  const [beside, second] = [remainingOf(tokens.beside.answer), tokens.second && remainingOf(tokens.second.answer)]
  const before = scope.found === 'client' ? beside : null
  const less = before === null || second === null ? Number.NaN : before - second
  const why = `${before} remained before a token request, ${second} after the call that followed it`
  if (less === 1) return likely('no', why, { assumed })
  if (less === 2) return likely('yes', why, { assumed })
  return unknown(Number.isNaN(less) ? scope.why : why, { assumed })
}
