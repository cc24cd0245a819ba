import { countedRequests } from '../countedRequests.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Observation } from '../fitWindow.ts'
import type { Question } from '../question.ts'
import { tokensSample } from '../samples/tokens.ts'

export const rateLimit: Question = {
  name: 'rate-limit',
  section: '8',
  asks: 'how many requests a window has, by what remains after the first',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokensSample],
  needs: [],
  harmless: false,
  async run(parts) {
    const tokens = await parts.sample(tokensSample)
    return judgeRateLimit(countedRequests(parts.exchanges(), tokens), parts.config.rateLimit)
  },
}

/** What remained, and what had been used: the most that they add up to while nothing can have been freed. Pure. */
export function judgeRateLimit(
  seen: readonly Observation[],
  { requests, windowMs }: { requests: number; windowMs: number },
): Finding {
  const assumed = `${requests} (RATE_LIMIT_REQUESTS)`
  const sinceMs = seen[0]?.fromMs ?? 0
  const limits = seen
    .filter(({ toMs }) => toMs < sinceMs + windowMs)
    .flatMap(({ remaining }, i) => (remaining === null ? [] : [remaining + i + 1]))
  if (limits.length === 0) return unknown('X-RateLimit-Remaining is not on the answers', { assumed })
  const limit = Math.max(...limits)
  const why = `what remained, and what was used, came to ${limit}; fewer where somebody else spent from it`
  const isLower = limit < requests
  return likely(String(limit), why, {
    assumed,
    differs: limit !== requests,
    set: isLower ? [{ variable: 'RATE_LIMIT_REQUESTS', value: String(limit), why }] : [],
    // What is too much is refused at the worst in production, and what is too little costs time alone.
    advice: limit > requests ? [`production may allow ${limit}, too: ask, then set RATE_LIMIT_REQUESTS`] : [],
  })
}
