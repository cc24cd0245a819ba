import { type Exchange, endedAtMs } from '../exchange.ts'
import { certaintyOf, createFinding, type Finding, likelyFinding, showMs, unknownFinding } from '../finding.ts'
import { authorizedFirstCallSample } from '../firstCall.ts'
import type { QuestionParts } from '../question.ts'

/** Judges what all answers so far show together. */

const responsesOf = (exchanges: readonly Exchange[]) =>
  exchanges.flatMap(({ answer }) => (answer.kind === 'response' ? [answer] : []))

export function judgeCompression(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: Accept-Encoding is identity'
  const encodings = responsesOf(exchanges).map(
    ({ headers }) => headers['content-encoding']?.trim().toLowerCase() || 'identity',
  )
  const encoding = encodings.find((each) => each !== 'identity')
  const certainty = certaintyOf(encodings.length)
  if (encoding === undefined) return createFinding(certainty, 'none', `${encodings.length} answers`, { assumed })
  return createFinding(certainty, encoding, 'an answer was compressed though Accept-Encoding was identity', {
    assumed,
    differs: true,
    cannot:
      'the daemon does not unpack answers: a record whose answer is compressed becomes uncertain. Have the service, or the proxy before it, obey Accept-Encoding',
  })
}

export async function askRedirects(parts: QuestionParts): Promise<Finding> {
  const finding = judgeRedirects(parts.exchanges())
  if (!finding.differs) await parts.sample(authorizedFirstCallSample) // only the service itself can show that there is none
  return finding
}

function judgeRedirects(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: they are never followed'
  const redirected = exchanges.flatMap(({ method, path, answer }) =>
    answer.kind === 'response' && answer.status >= 300 && answer.status < 400 ? [{ method, path, answer }] : [],
  )
  const [first] = redirected
  if (first === undefined)
    return createFinding(certaintyOf(exchanges.length), 'none', `${exchanges.length} answers`, { assumed })
  const to = first.answer.headers.location?.replace(/[?#].*$/s, '') ?? '(nowhere)'
  const why = `${first.method} ${first.path} is redirected to ${to}`
  const cannot = 'all sending pauses (unauthorized) at a redirect: look at SERVICE_BASE_URL, or at a proxy in between'
  return createFinding(certaintyOf(redirected.length), String(first.answer.status), why, {
    assumed,
    differs: true,
    cannot,
  })
}

/** Date has whole seconds and was written between request and answer, so each answer bounds the difference. */
export function judgeClock(exchanges: readonly Exchange[]): Finding {
  const assumed = 'within 2 s'
  const bounds = exchanges.flatMap((exchange) => {
    const { answer, startedAtMs } = exchange
    const dateMs = answer.kind === 'response' ? Date.parse(answer.headers.date ?? '') : Number.NaN
    return Number.isNaN(dateMs) ? [] : [{ minMs: dateMs - endedAtMs(exchange), maxMs: dateMs + 1_000 - startedAtMs }]
  })
  if (bounds.length === 0) return unknownFinding('no answer has a Date that can be read', { assumed })
  const minMs = Math.max(...bounds.map((each) => each.minMs))
  const maxMs = Math.min(...bounds.map((each) => each.maxMs))
  const why = `judging from ${bounds.length} answers, the service’s clock is ahead by ${minMs / 1000} to ${maxMs / 1000} s`
  if (minMs > maxMs + 1_000) return unknownFinding(`${why}: answers contradict each other`, { assumed })
  const certainty = certaintyOf(bounds.length)
  if (minMs <= 2_000 && maxMs >= -2_000) return createFinding(certainty, 'within 2 s', why, { assumed })
  const what = `${Math.round((minMs > 0 ? minMs : -maxMs) / 1_000)} s ${minMs > 0 ? 'ahead' : 'behind'}`
  const advice = ['times of the service and of outboxd will differ in logs. Correct the wrong clock with NTP']
  return createFinding(certainty, what, why, { assumed, differs: true, advice })
}

export function judgeResponseTime(exchanges: readonly Exchange[], timeoutMs: number): Finding {
  const assumed = `within 2 s; at most ${timeoutMs / 1000} s (REQUEST_TIMEOUT_SECONDS)`
  const times = responsesOf(exchanges)
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b)
  const slowestMs = times.at(-1)
  if (slowestMs === undefined) return unknownFinding('nothing was answered', { assumed })
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
  const lost = exchanges.length - times.length
  const why = `${times.length} answers${lost > 0 ? `, and ${lost} that did not come` : ''}; the slowest took ${showMs(slowestMs)}`
  const isNear = slowestMs > timeoutMs / 2 || lost > 0
  const advice = isNear
    ? ['some answers come late, or not at all: a longer REQUEST_TIMEOUT_SECONDS leaves fewer records in doubt']
    : []
  const what = `p50 ${showMs(quantile(0.5))}, p95 ${showMs(quantile(0.95))}`
  return likelyFinding(what, why, { assumed, differs: quantile(0.95) > 2_000, advice })
}
