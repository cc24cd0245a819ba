import type { Exchange } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'
import { showMs } from '../showMs.ts'

export const responseTime: Question = {
  name: 'response-time',
  section: '8',
  asks: 'how long answers take',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeResponseTime(parts.exchanges(), parts.config.service.requestTimeoutMs)
  },
}

/** Pure. */
export function judgeResponseTime(exchanges: readonly Exchange[], timeoutMs: number): Finding {
  const assumed = `within 2 s; at most ${timeoutMs / 1000} s (REQUEST_TIMEOUT_SECONDS)`
  const times = exchanges
    .flatMap(({ answer }) => (answer.kind === 'response' ? [answer.tookMs] : []))
    .toSorted((a, b) => a - b)
  if (times.length === 0) return unknown('nothing was answered', { assumed })
  const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)]
  const lost = exchanges.filter(({ answer }) => answer.kind === 'no-answer').length
  const why = `${times.length} answers${lost > 0 ? `, and ${lost} that did not come` : ''}; the slowest took ${showMs(times.at(-1) ?? 0)}`
  return sure(`p50 ${showMs(p50)}, p95 ${showMs(p95)}`, why, { assumed, differs: p95 > 2_000 })
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
