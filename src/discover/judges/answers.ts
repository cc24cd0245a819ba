import { type Exchange, endedAtMs } from '../exchange.ts'
import { type Finding, found, likely, showMs, unknown } from '../finding.ts'
import { addressSample } from '../firstCall.ts'
import type { Parts } from '../question.ts'

/** What all answers so far show together. */

/** Pure. */
export function judgeCompression(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: Accept-Encoding is identity'
  const encodings = exchanges.flatMap(({ answer }) =>
    answer.kind === 'response' ? [answer.headers['content-encoding']?.trim().toLowerCase() || 'identity'] : [],
  )
  const [encoding] = encodings.filter((each) => each !== 'identity')
  const certainty = encodings.length > 1 ? 'sure' : 'likely'
  if (encoding === undefined) return found(certainty, 'none', `${encodings.length} answers`, { assumed })
  return found(certainty, encoding, 'an answer was compressed though Accept-Encoding was identity', {
    assumed,
    differs: true,
    cannot:
      'the daemon does not unpack answers: a record whose answer is compressed becomes uncertain. Have the service, or the proxy before it, heed Accept-Encoding',
  })
}

export async function askRedirects(parts: Parts): Promise<Finding> {
  const finding = judgeRedirects(parts.exchanges())
  if (!finding.differs) await parts.sample(addressSample) // only the service can show that there is none
  return finding
}

/** Pure. */
export function judgeRedirects(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: they are never followed'
  const sent = exchanges.filter(
    ({ answer }) => answer.kind === 'response' && answer.status >= 300 && answer.status < 400,
  )
  const [first] = sent
  const certainty = exchanges.length > 1 ? 'sure' : 'likely'
  if (first?.answer.kind !== 'response') return found(certainty, 'none', `${exchanges.length} answers`, { assumed })
  const to = first.answer.headers.location?.replace(/[?#].*$/s, '') ?? '(nowhere)'
  return found(
    sent.length > 1 ? 'sure' : 'likely',
    String(first.answer.status),
    `${first.method} ${first.path} is sent to ${to}`,
    {
      assumed,
      differs: true,
      cannot: 'all sending pauses (unauthorized) at a redirect: look at SERVICE_BASE_URL, or at a proxy in between',
    },
  )
}

/** Each answer bounds the difference: its Date, in whole seconds, was written between request and answer. Pure. */
export function judgeClock(exchanges: readonly Exchange[]): Finding {
  const assumed = 'within 2 s'
  const bounds = exchanges.flatMap((exchange) => {
    const { answer } = exchange
    const dateMs = answer.kind === 'response' ? Date.parse(answer.headers.date ?? '') : Number.NaN
    return Number.isNaN(dateMs)
      ? []
      : [{ minMs: dateMs - endedAtMs(exchange), maxMs: dateMs + 1_000 - exchange.startedAtMs }]
  })
  if (bounds.length === 0) return unknown('no answer has a Date that can be read', { assumed })
  const minMs = Math.max(...bounds.map((each) => each.minMs))
  const maxMs = Math.min(...bounds.map((each) => each.maxMs))
  const why = `by ${bounds.length} answers the service’s clock is ahead by ${minMs / 1000} to ${maxMs / 1000} s`
  if (minMs > maxMs + 1_000) return unknown(`${why}: answers contradict each other`, { assumed })
  const certainty = bounds.length > 1 ? 'sure' : 'likely'
  if (minMs <= 2_000 && maxMs >= -2_000) return found(certainty, 'within 2 s', why, { assumed })
  const [ms, where] = minMs > 0 ? [minMs, 'ahead'] : [-maxMs, 'behind']
  return found(certainty, `${Math.round(ms / 1_000)} s ${where}`, why, {
    assumed,
    differs: true,
    advice: ['times of the service and ours will not fit together in logs; let NTP set the clock that is off'],
  })
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
  const isNear = (times.at(-1) ?? 0) > timeoutMs / 2 || lost > 0
  return likely(`p50 ${showMs(p50)}, p95 ${showMs(p95)}`, why, {
    assumed,
    differs: p95 > 2_000,
    advice: isNear
      ? ['some answers come near REQUEST_TIMEOUT_SECONDS, or not at all: a longer one leaves fewer records in doubt']
      : [],
  })
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
