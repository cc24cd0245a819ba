import { type Exchange, lineOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { limitSample } from '../samples/limit.ts'

export const rateRefusal: Question = {
  name: 'rate-refusal',
  section: '8',
  asks: 'how the first request beyond the limit is refused, and the form of its Retry-After',
  requestsMax: 0,
  recordsMax: 0,
  samples: [limitSample],
  needs: ['rate'],
  harmless: false,
  async run(parts) {
    return judgeRateRefusal(await parts.sample(limitSample))
  },
}

/** Pure. */
export function judgeRateRefusal(burst: readonly Exchange[]): Finding {
  const assumed = '429, with Retry-After or without'
  const last = burst.at(-1)?.answer
  if (last?.kind !== 'response' || last.status < 400)
    return unknown(`${burst.length} requests were not refused`, { assumed })
  const header = last.headers['retry-after']?.trim()
  const form =
    header === undefined
      ? 'none'
      : /^\d+$/.test(header)
        ? 'seconds'
        : Number.isNaN(Date.parse(header))
          ? 'unreadable'
          : 'date'
  const why = `request ${burst.length} of a burst: ${lineOf(last)}; Retry-After: ${header ?? 'none'}`
  if (last.status === 429) return sure(`429, Retry-After: ${form}`, why, { assumed })
  return unknown(why, {
    assumed,
    cannot: `beyond the limit the service answers ${last.status}: the daemon takes only 429 for that`,
  })
}
