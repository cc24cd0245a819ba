import { resources } from '../../resources.ts'
import { type Exchange, endedAtMs, isSuccess, lineOf, remainingOf } from '../exchange.ts'
import { type Finding, likely, sure, unknown } from '../finding.ts'
import type { Parts } from '../question.ts'
import { accessTokenIn, type Tokens, tokensSample } from '../samples/calls.ts'

/** By whether a POST with the second token goes on counting where those with the first stood. Pure. */
export function judgeRateScope({ poll, second, first }: Pick<Tokens, 'poll' | 'second' | 'first'>): Finding {
  const assumed = 'client'
  const [before, other, again] = [poll.answer, second?.answer, first.answer].map((seen) =>
    seen === undefined ? null : remainingOf(seen),
  )
  if (typeof before !== 'number' || typeof other !== 'number' || typeof again !== 'number')
    return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `remaining: ${before} with the first token, ${other} with the second, ${again} with the first again`
  if (other < before && again === other - 1)
    return likely('client', `${why}; one for the address would look the same`, { assumed })
  if (other >= before && again < before)
    return likely('token', why, {
      assumed,
      differs: true,
      advice: [
        'the daemon counts all tokens of the client together, which keeps any limit; with a token each, instances could have more',
      ],
    })
  return unknown(`${why}: a window may have passed meanwhile`, { assumed })
}

/** Pure. */
export function judgeRatePolls({ post, poll }: Pick<Tokens, 'post' | 'poll'>): Finding {
  const assumed = 'yes'
  const [before, after] = [remainingOf(post.answer), remainingOf(poll.answer)]
  if (before === null || after === null) return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `${before} remained before a question for a transaction, ${after} after it`
  if (after === before - 1) return likely('yes', why, { assumed })
  if (after === before)
    return likely('no', why, {
      assumed,
      differs: true,
      advice: ['the daemon pays for polls all the same, which keeps any limit'],
    })
  return unknown(why, { assumed })
}

/** Pure. */
export function judgeRateOrders({ poll, order }: Pick<Tokens, 'poll' | 'order'>): Finding {
  const assumed = 'shared'
  const [data, orders] = [remainingOf(poll.answer), remainingOf(order.answer)]
  if (data === null || orders === null) return unknown('X-RateLimit-Remaining is not on these answers', { assumed })
  const why = `${data} remained after a question for a transaction, ${orders} after an order that followed it`
  if (orders === data - 1) return likely('shared', why, { assumed })
  if (orders >= data)
    return likely('apart', why, {
      assumed,
      differs: true,
      advice: ['the daemon counts both halves together, which keeps any limit'],
    })
  return unknown(why, { assumed })
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

export async function askRateLimit(parts: Parts): Promise<Finding> {
  const tokens = await parts.sample(tokensSample)
  return judgeRateLimit(countedRequests(parts.exchanges(), tokens), parts.config.rateLimit)
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

export async function askRateWindow(parts: Parts): Promise<Finding> {
  const tokens = await parts.sample(tokensSample)
  return judgeRateWindow(countedRequests(parts.exchanges(), tokens), parts.config.rateLimit.windowMs)
}

const usualMs = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 3_600].map((seconds) => seconds * 1_000)

/** Pure. @param windowMs as it is configured */
export function judgeRateWindow(seen: readonly Observation[], windowMs: number): Finding {
  const assumed = `any kind, of ${windowMs / 1000} s (RATE_LIMIT_WINDOW_SECONDS)`
  const said = seen.flatMap(({ remaining }) => remaining ?? [])
  if (said.length < 4) return unknown('X-RateLimit-Remaining is not on the answers', { assumed })
  const why = `remaining: ${said.join(', ')}`
  if (said.every((remaining, i) => i === 0 || remaining < (said[i - 1] ?? 0)))
    return likely('longer', `${why}: nothing was freed`, {
      assumed,
      differs: true,
      cannot: `the window is longer than ${windowMs / 1000} s: ask for its length and set RATE_LIMIT_WINDOW_SECONDS, or the service will refuse requests`,
    })
  const fits = fitWindows(seen, [...new Set([windowMs, ...usualMs])])
  const kinds = [...new Set(fits.map(({ kind }) => kind))]
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1)
    return unknown(`${why}: no window, or more than one kind, explains that`, { assumed })
  const lengths = fits.map((fit) => fit.windowMs)
  if (lengths.includes(windowMs)) return likely(`${kind}, ${windowMs / 1000} s`, why, { assumed })
  const longestMs = Math.max(...lengths)
  const set = [
    {
      variable: 'RATE_LIMIT_WINDOW_SECONDS',
      value: String(longestMs / 1000),
      why: 'what remained came back after that time',
    },
  ]
  return likely(`${kind}, ${longestMs / 1000} s`, why, { assumed, differs: true, set })
}

/** Pure. */
export function judgeRateHeader(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: it is used where it is'
  const answered = exchanges.filter(({ answer }) => answer.kind === 'response')
  const groups = Object.entries(Object.groupBy(answered, groupOf))
  const shares = groups.map(([name, all = []]) => {
    const having = all.filter(({ answer }) => remainingOf(answer) !== null).length
    return {
      name,
      share: having === 0 ? 'none' : having === all.length ? 'all' : 'some',
      text: `${name}: ${having} of ${all.length}`,
    }
  })
  const why = shares.map(({ text }) => text).join(', ')
  if (shares.length === 0) return unknown('nothing was answered', { assumed })
  const having = shares.filter(({ share }) => share === 'all').map(({ name }) => name)
  const some = shares.filter(({ share }) => share === 'some').map(({ name }) => `some ${name}`)
  const success = shares.find(({ name }) => name === 'successes')?.share
  const refusal = shares.find(({ name }) => name === 'refusals')?.share
  const isOnAll = refusal === 'all' && (success === 'all' || success === undefined)
  const isOnNone = having.length + some.length === 0
  const on = isOnNone ? 'none' : isOnAll ? 'all' : 'some'
  const contract: Finding['contract'] = refusal === undefined ? {} : { rate_remaining: on }
  if (isOnNone)
    return sure('none', why, {
      assumed,
      contract,
      advice: ['nobody else should spend from the same limit: the daemon could not notice it before it is refused'],
    })
  return sure(shares.every(({ share }) => share === 'all') ? 'all' : [...having, ...some].join(', '), why, {
    assumed,
    contract,
  })
}

function groupOf({ path, answer }: Exchange): string {
  if (path.endsWith('/oauth/token')) return 'tokens'
  if (answer.kind === 'response' && answer.status === 401) return 'unauthorized'
  return isSuccess(answer) ? 'successes' : 'refusals'
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

/** An answer that says how much of the limit remains, or a request that counted without saying so. */
export interface Observation {
  /** When the service may have counted it: between the request and its answer. */
  fromMs: number
  toMs: number
  /** Null where it was not said. */
  remaining: number | null
}

export type WindowKind = 'sliding' | 'fixed'

/** A window that explains every answer. */
export interface WindowFit {
  kind: WindowKind
  windowMs: number
  /** The limits that it would have. */
  limit: { least: number; most: number }
}

const phases = 120
const freedMin = 2

/**
 * The windows, among those of these lengths, under which what remained and what had been used add up to one limit at each answer.
 * One under which nothing had been freed yet explains nothing, and is none. Pure.
 *
 * @param seen in their order; each counted once
 */
export function fitWindows(seen: readonly Observation[], windowsMs: readonly number[]): WindowFit[] {
  return windowsMs.flatMap((windowMs) => [sliding(seen, windowMs), fixed(seen, windowMs)].filter((fit) => fit !== null))
}

interface Used {
  least: number
  most: number
}

function sliding(seen: readonly Observation[], windowMs: number): WindowFit | null {
  const used = seen.map(({ fromMs, toMs }, i): Used => {
    const before = seen.slice(0, i + 1)
    return {
      least: before.filter((each) => each.fromMs > toMs - windowMs).length,
      most: before.filter((each) => each.toMs > fromMs - windowMs).length,
    }
  })
  return fitOf('sliding', windowMs, seen, used)
}

/** The boundaries may lie anywhere: every phase is tried, and the limits of those that fit are put together. */
function fixed(seen: readonly Observation[], windowMs: number): WindowFit | null {
  const fits = Array.from({ length: phases }, (_, phase) => {
    const startMs = (phase / phases) * windowMs
    const windowOf = (ms: number) => Math.floor((ms - startMs) / windowMs)
    const used = seen.map(({ fromMs, toMs }, i): Used => {
      const before = seen.slice(0, i + 1)
      const [early, late] = [windowOf(fromMs), windowOf(toMs)]
      return {
        least: before.filter((each) => windowOf(each.fromMs) === late && early === late).length || 1,
        most: before.filter((each) => windowOf(each.toMs) >= early).length,
      }
    })
    return fitOf('fixed', windowMs, seen, used)
  }).filter((fit) => fit !== null)
  const limits = fits.map(({ limit }) => limit)
  if (limits.length === 0) return null
  const limit = {
    least: Math.min(...limits.map(({ least }) => least)),
    most: Math.max(...limits.map(({ most }) => most)),
  }
  return { kind: 'fixed', windowMs, limit }
}

function fitOf(
  kind: WindowKind,
  windowMs: number,
  seen: readonly Observation[],
  used: readonly Used[],
): WindowFit | null {
  let limit = { least: 0, most: Number.POSITIVE_INFINITY }
  let freed = 0
  for (const [i, { remaining }] of seen.entries()) {
    const { least, most } = used[i] ?? { least: 0, most: 0 }
    freed = Math.max(freed, i + 1 - most)
    if (remaining === null) continue
    limit = { least: Math.max(limit.least, remaining + least), most: Math.min(limit.most, remaining + most) }
  }
  return freed >= freedMin && limit.least <= limit.most ? { kind, windowMs, limit } : null
}
