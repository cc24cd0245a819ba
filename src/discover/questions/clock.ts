import { type Exchange, endedAtMs } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const clock: Question = {
  name: 'clock',
  section: '2.3',
  asks: 'how far the service’s clock is from ours, by the header Date',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeClock(parts.exchanges())
  },
}

/** Each answer bounds it: the Date, which is whole seconds, was written between request and answer. Pure. */
export function judgeClock(exchanges: readonly Exchange[]): Finding {
  const assumed = 'within 2 s'
  const bounds = exchanges.flatMap((exchange) => {
    const { answer } = exchange
    const dateMs = answer.kind === 'response' ? Date.parse(answer.headers.date ?? '') : Number.NaN
    return Number.isNaN(dateMs)
      ? []
      : [{ leastMs: dateMs - endedAtMs(exchange), mostMs: dateMs + 1_000 - exchange.startedAtMs }]
  })
  if (bounds.length === 0) return unknown('no answer has a Date that can be read', { assumed })
  const leastMs = Math.max(...bounds.map((each) => each.leastMs))
  const mostMs = Math.min(...bounds.map((each) => each.mostMs))
  const why = `by ${bounds.length} answers it is ahead by ${leastMs / 1000} to ${mostMs / 1000} s`
  if (leastMs <= 2_000 && mostMs >= -2_000) return sure('within 2 s', why, { assumed })
  const [ms, where] = leastMs > 0 ? [leastMs, 'ahead'] : [-mostMs, 'behind']
  return sure(`${Math.round(ms / 1_000)} s ${where}`, why, {
    assumed,
    differs: true,
    advice: ['times of the service and ours will not fit together in logs; let NTP set the one that is off'],
  })
}
