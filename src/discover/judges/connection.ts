import type { ConnectionSeen } from '../connection.ts'
import { type Exchange, endedAtMs } from '../exchange.ts'
import { type Finding, likely, showMs, sure, unknown } from '../finding.ts'
import type { Parts } from '../question.ts'
import { connectionSample, firstCallSample, firstExchangeSample, judgeAddress } from '../samples/calls.ts'

export async function askAddress(parts: Parts): Promise<Finding> {
  const { first, beside } = await parts.sample(firstExchangeSample)
  return judgeAddress(first.answer, beside?.answer ?? null).finding
}

export async function askHttpVersion(parts: Parts): Promise<Finding> {
  const seen = await parts.sample(connectionSample)
  const assumed = '1.1'
  if (seen.kind === 'failed') return unknown(seen.why, { assumed })
  return sure(seen.httpVersion, 'the daemon speaks 1.1 alone', { assumed, differs: seen.httpVersion !== '1.1' })
}

/** Pure. */
export function judgeKeepAlive(seen: ConnectionSeen): Finding {
  const assumed = 'any: each POST has a connection of its own'
  if (seen.kind === 'failed') return unknown(seen.why, { assumed })
  if (seen.closes) return sure('closed at once', 'Connection: close', { assumed })
  if (seen.endedAfterMs !== null)
    return sure(showMs(seen.endedAfterMs), 'then it ended an idle connection', { assumed })
  if (seen.keepAliveSeconds !== null)
    return likely(`${seen.keepAliveSeconds} s`, `Keep-Alive: timeout=${seen.keepAliveSeconds}`, { assumed })
  return unknown('it keeps connections, and does not say for how long', { assumed })
}

export async function askTls(parts: Parts): Promise<Finding> {
  const seen = await parts.sample(connectionSample)
  if (seen.kind === 'failed') return unknown(seen.why)
  if (seen.tls === null) return sure('none', 'SERVICE_BASE_URL is http on loopback')
  const { protocol, certificateUntilMs } = seen.tls
  if (certificateUntilMs === null) return sure(protocol, 'its certificate does not say until when it is valid')
  const days = Math.floor((certificateUntilMs - parts.nowMs()) / 86_400_000)
  const until = new Date(certificateUntilMs).toISOString().slice(0, 10)
  const advice = days < 30 ? [`the certificate of the service ends in ${days} days: tell its operator`] : []
  return sure(`${protocol}, until ${until}`, `its certificate is valid for ${days} days more`, { advice })
}

/** Pure. */
export function judgeCompression(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: Accept-Encoding is identity'
  const encodings = exchanges.flatMap(({ answer }) =>
    answer.kind === 'response' ? [answer.headers['content-encoding']?.trim().toLowerCase() || 'identity'] : [],
  )
  const [encoding] = encodings.filter((each) => each !== 'identity')
  if (encoding === undefined) return sure('none', `${encodings.length} answers`, { assumed })
  return sure(encoding, 'an answer was compressed though Accept-Encoding was identity', {
    assumed,
    differs: true,
    cannot:
      'the daemon does not unpack answers: a record whose answer is compressed becomes uncertain. Have the service, or the proxy before it, heed Accept-Encoding',
  })
}

export async function askRedirects(parts: Parts): Promise<Finding> {
  const finding = judgeRedirects(parts.exchanges())
  if (!finding.differs) await parts.sample(firstCallSample) // that there is none, only the service can tell
  return finding
}

/** Pure. */
export function judgeRedirects(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: they are never followed'
  const sent = exchanges.find(({ answer }) => answer.kind === 'response' && answer.status >= 300 && answer.status < 400)
  if (sent?.answer.kind !== 'response') return sure('none', `${exchanges.length} answers`, { assumed })
  const to = sent.answer.headers.location?.replace(/[?#].*$/s, '') ?? '(nowhere)'
  return sure(String(sent.answer.status), `${sent.method} ${sent.path} is sent to ${to}`, {
    assumed,
    differs: true,
    cannot: 'everybody pauses (unauthorized) at a redirect: look at SERVICE_BASE_URL, or at a proxy in between',
  })
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
