import { resources } from '../resources.ts'
import { type Exchange, endedAtMs, remainingOf } from './exchange.ts'
import type { Observation } from './fitWindow.ts'
import { judgeRateOrders } from './questions/rateOrders.ts'
import { judgeRatePolls } from './questions/ratePolls.ts'
import { judgeRateScope } from './questions/rateScope.ts'
import { judgeRateTokens } from './questions/rateTokens.ts'
import { accessTokenIn } from './samples/token.ts'
import type { Tokens } from './samples/tokens.ts'

/** The requests that the limit counts, as far as the calls around a second token have shown, and what remained after each. Pure. */
export function countedRequests(exchanges: readonly Exchange[], tokens: Tokens): Observation[] {
  const countsPolls = judgeRatePolls(tokens).found !== 'no'
  const countsOrders = judgeRateOrders(tokens).found !== 'apart'
  const countsTokens = judgeRateTokens(tokens).found === 'yes'
  const isByToken = judgeRateScope(tokens).found === 'token'
  const [first] = exchanges.flatMap(({ answer }) => accessTokenIn(answer) ?? [])
  const known = new Set(exchanges.flatMap(({ answer }) => accessTokenIn(answer) ?? []))
  return exchanges
    .filter(({ accessToken, path, method, answer }) => {
      if (answer.kind === 'no-answer' || answer.status === 429) return false
      if (accessToken === null) return countsTokens && path.endsWith('/oauth/token')
      if (isByToken ? accessToken !== first : !known.has(accessToken)) return false
      if (method === 'GET' && !countsPolls) return false
      return countsOrders || !path.includes(resources.orders.path)
    })
    .map((exchange) => ({
      fromMs: exchange.startedAtMs,
      toMs: endedAtMs(exchange),
      remaining: exchange.accessToken === null ? null : remainingOf(exchange.answer),
    }))
}
