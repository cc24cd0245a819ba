import { resources } from '../../resources.ts'
import { retryAfterMs } from '../../service/client.ts'
import { isServiceCode } from '../../service/errorCode.ts'
import { shortWaitMs } from '../createParts.ts'
import {
  accessTokenIn,
  type Exchange,
  endedAtMs,
  isSuccess,
  lineOf,
  remainingOf,
  type Seen,
  statusIn,
} from '../exchange.ts'
import { type Finding, found, likely, type Setting, showMs, unknown } from '../finding.ts'
import { NoAnswer, type Parts, type Sample, type Throttle } from '../question.ts'
import { acceptedShape, isTaken, keyHeaders, recordBody, submit } from '../testRecord.ts'
import { orderSample, postOrder } from './orders.ts'
import { livesSample } from './records.ts'

/**
 * What the limit counts is read from X-RateLimit-Remaining on records that are taken: by how much less remains after requests of
 * one kind than before them. A header that does not fall by one with each record is not believed at all. How large the limit is
 * comes from counting to it (--rate), or from what remained and what had been used.
 */

type Kind = 'poll' | 'order' | 'refused' | 'token'

/** What the limit counted of some requests of one kind, between two records. */
interface Counted {
  kind: Kind
  sent: number
  /** By how much less remained, without the record itself; null if a header was missing. */
  less: number | null
}

/** What X-RateLimit-Remaining said in a row of requests. */
export interface Header {
  /** By how much less remained after each of several records in a row. */
  falls: readonly (number | null)[]
  counted: readonly Counted[]
  /** After a record with the first token; then, each with the next token, after two records; null if missing. */
  tokens: { first: number | null; second: readonly (number | null)[]; third: number | null; firstAgain: number | null }
}

export const headerSample: Sample<Header> = {
  name: 'records, and other requests between them',
  requestsMax: 22,
  recordsMax: 14,
  samples: [livesSample],
  async take(parts) {
    const first = await watchHeader(parts)
    // A window that ended meanwhile freed what had been used: look again.
    const isRisen = [...first.falls, ...first.counted.map(({ less }) => less)].some((fall) => fall !== null && fall < 0)
    return isRisen && first.falls.length > 0 ? watchHeader(parts) : first
  },
}

async function watchHeader(parts: Parts): Promise<Header> {
  const shape = await acceptedShape(parts)
  const path = await visiblePath(parts)
  const mayOrder = parts.given.orderCustomer !== null && (await parts.sample(orderSample)).shape !== null
  const record = async () => remainingOf((await submit(parts)).answer)
  const counted: Counted[] = []
  let last = await record()
  const start = last
  const falls: (number | null)[] = []
  for (let i = 0; i < 2; i++) {
    const next = await record()
    falls.push(last === null || next === null ? null : last - next)
    last = next
  }
  if (start === null) return { falls, counted, tokens: { first: null, second: [], third: null, firstAgain: null } }
  const between = async (kind: Kind, send: () => Promise<unknown>) => {
    for (let i = 0; i < 2; i++) await send()
    const next = await record()
    counted.push({ kind, sent: 2, less: last === null || next === null ? null : last - next - 1 })
    last = next
  }
  if (path !== null) await between('poll', () => parts.get(path))
  await between('refused', () =>
    parts.call({
      method: 'POST',
      path: resources.data.path,
      body: '{}',
      headers: keyHeaders(shape.key, crypto.randomUUID()),
    }),
  )
  if (mayOrder) await between('order', () => postOrder(parts))
  const former = await parts.token()
  const renew = () => parts.askToken(parts.config.service.clientSecret)
  const first = await record()
  await renew()
  const second = [await record(), await record()]
  const again = await parts.call({
    ...{ method: 'POST', path: resources.data.path, body: recordBody(parts, shape), accessToken: former },
    headers: keyHeaders(shape.key, crypto.randomUUID()),
  })
  const firstAgain = isTaken(again) ? remainingOf(again.answer) : null
  await renew()
  return { falls, counted, tokens: { first, second, third: await record(), firstAgain } }
}

/** A question for a transaction that the service has shown; null if it has shown none. */
async function visiblePath(parts: Parts): Promise<string | null> {
  const { polls } = await parts.sample(livesSample)
  return (
    polls
      .flat()
      .findLast((each) => statusIn(each) !== null)
      ?.path.slice(prefixLength(parts)) ?? null
  )
}

const prefixLength = ({ config }: Parts) => new URL(config.service.baseUrl).pathname.replace(/\/+$/, '').length

const noHeader = 'X-RateLimit-Remaining is not on the answers to records'

/** Why the header is not believed; null if it is. Pure. */
export function doubtOf({ falls }: Header): string | null {
  if (falls.length === 0 || falls.some((fall) => fall === null)) return noHeader
  return falls.every((fall) => fall === 1)
    ? null
    : `X-RateLimit-Remaining is not believed: three records in a row made it fall by ${falls.join(' and ')}`
}

interface KindQuestion {
  kind: Kind
  yes: string
  no: string
  assumed: string
  /** What follows if it is not as assumed. */
  advice: string
}

/** Pure. */
export function judgeCounted(header: Header, { kind, yes, no, assumed, advice }: KindQuestion): Finding {
  const doubt = doubtOf(header)
  if (doubt !== null) return unknown(doubt, { assumed })
  const counted = header.counted.find((each) => each.kind === kind)
  if (counted === undefined) return unknown('no such request could be made', { assumed })
  const why = `${counted.sent} of them between two records made what remains fall by ${counted.less}`
  const what = counted.less === counted.sent ? yes : counted.less === 0 ? no : null
  if (what === null) return unknown(why, { assumed })
  return likely(what, why, { assumed, differs: what !== assumed, advice: what === assumed ? [] : [advice] })
}

const paysAllTheSame = 'the daemon pays for them all the same, which keeps any limit'
const kinds = {
  poll: { kind: 'poll', yes: 'yes', no: 'no', assumed: 'yes', advice: paysAllTheSame },
  refused: { kind: 'refused', yes: 'yes', no: 'no', assumed: 'yes', advice: paysAllTheSame },
  order: {
    kind: 'order',
    yes: 'shared',
    no: 'apart',
    assumed: 'shared',
    advice: 'the daemon counts both halves together, which keeps any limit',
  },
} as const

const askCounted = (kind: keyof typeof kinds) => async (parts: Parts) =>
  judgeCounted(await parts.sample(headerSample), kinds[kind])
export const askRatePolls = askCounted('poll')
export const askRateFailures = askCounted('refused')
export const askRateOrders = askCounted('order')

interface OfTokens {
  scope: 'client' | 'token' | null
  /** Whether a request for a token counts; null if that cannot be told. */
  counts: boolean | null
  why: string
}

/** By whether records with a second token go on counting from where those with the first stood, twice. Pure. */
function readTokens({ tokens }: Header): OfTokens {
  const { first, second, third, firstAgain } = tokens
  const [one, two] = second
  const why = `remaining: ${first} with one token, ${second.join(' and ')} with the next, ${firstAgain ?? 'none'} with the first again, ${third} with a third`
  const nothing = { scope: null, counts: null, why }
  if (first === null || one == null || two == null || third === null || one - two !== 1) return nothing
  const step = first - one
  const last = firstAgain !== null && firstAgain < two ? firstAgain : two
  if ((step === 1 || step === 2) && last - third === step) return { scope: 'client', counts: step === 2, why }
  const isApart = one > first && third > first && (firstAgain === null || firstAgain === first - 1)
  return isApart ? { scope: 'token', counts: null, why } : nothing
}

/** Pure. */
export function judgeRateScope(header: Header): Finding {
  const assumed = 'client'
  const doubt = doubtOf(header)
  if (doubt !== null) return unknown(doubt, { assumed })
  const { scope, why } = readTokens(header)
  if (scope === null) return unknown(why, { assumed })
  if (scope === 'client') return likely('client', `${why}; one for the address would look the same`, { assumed })
  return likely('token', why, {
    assumed,
    differs: true,
    advice: [
      'the daemon counts all tokens of the client together, which keeps any limit; with a token each, instances could have more',
    ],
  })
}

/** Pure. */
export function judgeRateTokens(header: Header): Finding {
  const assumed = 'no; they are paid for all the same'
  const doubt = doubtOf(header)
  if (doubt !== null) return unknown(doubt, { assumed })
  const { scope, counts, why } = readTokens(header)
  if (counts === null)
    return unknown(
      scope === 'token' ? 'each token has a limit of its own, and a request for one comes before it' : why,
      { assumed },
    )
  return likely(counts ? 'yes' : 'no', why, { assumed })
}

/** A limit shorter than the window: how many requests at once it lets through. */
export interface Burst {
  sent: number
  taken: number
  /** Whether the first request after a pause of `shortWaitMs` was let in; null if none was refused. */
  passesSoon: boolean | null
}

const atOnce = 20

/** Requests side by side, and twice more if some were refused. */
export const secondSample: Sample<readonly Burst[]> = {
  name: `${atOnce} requests at once`,
  requestsMax: 3 * (atOnce + 1),
  recordsMax: atOnce,
  samples: [headerSample],
  async take(parts) {
    const send = await countedRequest(parts)
    const bursts: Burst[] = []
    while (bursts.length < 3) {
      await parts.waitMs(shortWaitMs)
      const answers = await Promise.all(Array.from({ length: atOnce }, () => send()))
      const taken = answers.filter(({ answer }) => !isThrottled(answer)).length
      if (taken === atOnce) {
        bursts.push({ sent: atOnce, taken, passesSoon: null })
        break
      }
      await parts.waitMs(shortWaitMs)
      const passesSoon = !isThrottled((await send()).answer)
      bursts.push({ sent: atOnce, taken, passesSoon })
      if (!passesSoon) break
    }
    return bursts
  },
}

/** A request that is taken and that the limit counts: a question if polls count, else a record. */
async function countedRequest(parts: Parts): Promise<() => Promise<Exchange>> {
  const shape = await acceptedShape(parts)
  const header = await parts.sample(headerSample)
  const path = judgeCounted(header, kinds.poll).found === 'yes' ? await visiblePath(parts) : null
  if (path !== null) return () => parts.call({ method: 'GET', path, beyondLimit: true })
  return () =>
    parts.call({
      ...{ method: 'POST', path: resources.data.path, body: recordBody(parts, shape), beyondLimit: true },
      headers: keyHeaders(shape.key, crypto.randomUUID()),
    })
}

/** Pure. @param peak the most requests that were let in within a second */
export function judgeRateSecond(bursts: readonly Burst[], peak: number): Finding {
  const assumed = 'none beside the window'
  const refused = bursts.filter(({ passesSoon }) => passesSoon)
  const why = `${bursts.map(({ sent, taken }) => `of ${sent} at once ${taken} were let in`).join(', ')}; at most ${peak} were let in within a second`
  if (refused.length === 0) {
    if (bursts.some(({ passesSoon }) => passesSoon === false) || bursts.length === 0)
      return unknown(`${why}; the limit of the window was reached`, { assumed })
    return likely('none', why, { assumed })
  }
  const least = Math.min(...refused.map(({ taken }) => taken))
  if (least === 0 || bursts.some(({ sent, taken }) => taken === sent)) return unknown(why, { assumed })
  const agree = refused.filter(({ taken }) => taken === least).length > 1
  return found(agree ? 'sure' : 'likely', `${least} a second`, why, {
    assumed,
    differs: true,
    advice: ['RATE_LIMIT_REQUESTS and RATE_LIMIT_WINDOW_SECONDS as rate-limit sets them keep both limits'],
  })
}

export async function askRateSecond(parts: Parts): Promise<Finding> {
  const bursts = await parts.sample(secondSample)
  return judgeRateSecond(bursts, peakOf(parts.exchanges()))
}

const secondLimitOf = (finding: Finding): number | null =>
  finding.found?.endsWith(' a second') ? Number.parseInt(finding.found, 10) : null

function peakOf(exchanges: readonly Exchange[]): number {
  const times = exchanges.filter(({ answer }) => isSuccess(answer)).map(({ startedAtMs }) => startedAtMs)
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
}

const isThrottled = (seen: Seen) => seen.kind === 'response' && seen.status === 429 && !isServiceCode(seen.code)

/** Requests until one was refused for the limit of the window, after a window without any. */
export interface Count {
  taken: number
  /** Requests for a token meanwhile, which may count, too. */
  tokens: number
  /** Whether a request was refused for good: else the limit was not reached. */
  refused: boolean
}

/** Two counts to the limit, with 429s between them. */
export interface Counts {
  counts: readonly Count[]
  /** Requests sent between the two counts, while nothing was free, and how many of them were refused. */
  between: { sent: number; refused: number; tokens: number }
}

const betweenCounts = 4
const countMaxOf = (requests: number) => Math.max(130, Math.ceil(requests * 1.3))
/** With the default limit of 100: a larger one counts further, and --budget ends it. */
const countMax = countMaxOf(100)

export const countsSample: Sample<Counts> = {
  name: 'requests until the limit is reached, twice',
  requestsMax: 2 * (countMax + 10) + betweenCounts,
  recordsMax: 2 * countMax,
  samples: [secondSample],
  needs: 'rate',
  async take(parts) {
    const { windowMs } = parts.config.rateLimit
    const send = await countedRequest(parts)
    const second = secondLimitOf(judgeRateSecond(await parts.sample(secondSample), 0))
    const rest = async (ms: number) => parts.waitMs(Math.max(0, lastEndMs(parts) + ms - parts.nowMs()))
    await rest(windowMs + 1_000)
    const first = await countToLimit(parts, send, second)
    if (!first.refused) return { counts: [first], between: { sent: 0, refused: 0, tokens: 0 } }
    const endedMs = lastEndMs(parts)
    await rest(windowMs / 2)
    const before = grantsIn(parts)
    let refused = 0
    for (let i = 0; i < betweenCounts; i++) refused += isThrottled((await send()).answer) ? 1 : 0
    await parts.waitMs(Math.max(0, endedMs + windowMs + 1_000 - parts.nowMs()))
    const between = { sent: betweenCounts, refused, tokens: grantsIn(parts) - before }
    return { counts: [first, await countToLimit(parts, send, second)], between }
  },
}

const lastEndMs = (parts: Parts) => Math.max(...parts.exchanges().map(endedAtMs))

async function countToLimit(parts: Parts, send: () => Promise<Exchange>, second: number | null): Promise<Count> {
  const gapMs = second === null ? 0 : 1_200 / second
  const max = countMaxOf(parts.config.rateLimit.requests)
  const before = grantsIn(parts)
  const count = (refused: boolean): Count => ({ taken, refused, tokens: grantsIn(parts) - before })
  let taken = 0
  while (taken < max) {
    if (gapMs > 0) await parts.waitMs(gapMs)
    const { answer } = await send()
    if (answer.kind === 'no-answer') throw new NoAnswer(lineOf(answer))
    if (!isThrottled(answer)) taken++
    else {
      await parts.waitMs(shortWaitMs)
      if (isThrottled((await send()).answer)) return count(true)
      taken++
    }
  }
  return count(false)
}

const grantsIn = (parts: Parts) => parts.exchanges().filter(({ answer }) => accessTokenIn(answer) !== null).length

interface CountsRead {
  limit: number
  /** Whether both counts come to it: to this limit only, to several of which it is the smallest, or not. */
  fit: 'one' | 'several' | 'none'
  /** Whether the 429s between them counted; null if that cannot be told. */
  throttledCount: boolean | null
}

/**
 * The limit to which both counts come, whether or not tokens count, and the requests between them; else the smaller count, because a
 * window that ends in between makes a count too large. Null if the limit was not reached. Pure.
 */
export function readCounts({ counts, between }: Counts): CountsRead | null {
  const [first, second] = counts
  if (first === undefined || !first.refused) return null
  if (second === undefined || !second.refused) return { limit: first.taken, fit: 'none', throttledCount: null }
  // What was let in between the counts may have left the window, and what was refused may have counted.
  const more = [...new Set([0, between.sent - between.refused, between.sent])]
  const fits = [0, 1].flatMap((token) =>
    more.flatMap((sent) => {
      const limit = first.taken + token * first.tokens
      const isSame = limit === second.taken + token * second.tokens + sent + (sent > 0 ? token * between.tokens : 0)
      return isSame ? [{ limit, counted: sent === between.sent }] : []
    }),
  )
  const [fit] = fits.toSorted((a, b) => a.limit - b.limit)
  if (fit === undefined) return { limit: Math.min(first.taken, second.taken), fit: 'none', throttledCount: null }
  const isOne = fits.every(({ limit }) => limit === fit.limit)
  const isTold = between.refused > 0 && fits.every(({ counted }) => counted === fit.counted)
  return { limit: fit.limit, fit: isOne ? 'one' : 'several', throttledCount: isTold ? fit.counted : null }
}

async function countsOf(parts: Parts): Promise<Counts | null> {
  return parts.given.rate ? parts.sample(countsSample) : null
}

export async function askRateLimit(parts: Parts): Promise<Finding> {
  const header = await parts.sample(headerSample)
  const second = secondLimitOf(judgeRateSecond(await parts.sample(secondSample), 0))
  const counts = await countsOf(parts)
  const finding = judgeRateLimit({
    counts,
    range:
      doubtOf(header) === null
        ? limitByHeader(usedRequests(parts.exchanges(), header), parts.config.rateLimit.windowMs)
        : null,
    doubt:
      doubtOf(header) ??
      (isContradicted(parts) ? 'a request was refused while the header said that some remained' : null),
    configured: parts.config.rateLimit,
  })
  const limit = finding.set.find(({ variable }) => variable === 'RATE_LIMIT_REQUESTS')?.value
  const set =
    second === null
      ? finding.set
      : bothLimits(Number(limit ?? parts.config.rateLimit.requests), second, parts.config.rateLimit.windowMs)
  return { ...finding, set }
}

/** A window within which no more may be sent than in a second, and as often as the limit of the whole window allows. */
function bothLimits(limit: number, second: number, windowMs: number): Setting[] {
  const requests = Math.min(second, limit)
  const windows = Math.max(1, Math.floor(limit / requests))
  const why = `${second} a second and ${limit} in ${windowMs / 1000} s: ${requests} in this time keep both`
  return [
    { variable: 'RATE_LIMIT_REQUESTS', value: String(requests), why },
    { variable: 'RATE_LIMIT_WINDOW_SECONDS', value: String(Math.max(2, Math.ceil(windowMs / 1000 / windows))), why },
  ]
}

interface LimitSeen {
  counts: Counts | null
  /** What the header allows for; null if it is not there or contradicts itself. */
  range: { min: number; max: number } | null
  doubt: string | null
  configured: { requests: number; windowMs: number }
}

/** What was counted wins; else the smallest limit that explains every header. Pure. */
export function judgeRateLimit({ counts, range, doubt, configured }: LimitSeen): Finding {
  const { requests } = configured
  const assumed = `${requests} (RATE_LIMIT_REQUESTS)`
  const say = (certainty: 'sure' | 'likely', limit: number, why: string) =>
    found(certainty, String(limit), why, {
      assumed,
      differs: limit !== requests,
      set: limit < requests ? [{ variable: 'RATE_LIMIT_REQUESTS', value: String(limit), why }] : [],
      // In production, a limit that is too high brings refusals. One that is too low only costs time.
      advice: limit > requests ? [`production may allow ${limit}, too: ask, then set RATE_LIMIT_REQUESTS`] : [],
    })
  const read = counts === null ? null : readCounts(counts)
  const counted =
    counts === null
      ? ''
      : `counted to the limit: ${counts.counts.map(({ taken, refused }) => (refused ? taken : `more than ${taken}`)).join(' and ')}`
  if (read !== null && read.fit !== 'none') return say(read.fit === 'one' ? 'sure' : 'likely', read.limit, counted)
  if (read !== null && counts?.counts.length === 1) return say('likely', read.limit, counted)
  // Two counts that differ: the smaller is kept all the same, so that the daemon stays below the limit.
  if (read !== null)
    return { ...unknown(`${counted}, which differ`, { assumed }), set: say('likely', read.limit, counted).set }
  if (counts !== null) return likely(`more than ${counts.counts[0]?.taken}`, counted, { assumed, differs: true })
  if (doubt !== null || range === null)
    return unknown(`${doubt ?? 'what remained contradicts what was used'}: --rate counts`, { assumed })
  const why = `what remained, and what had been used, fit ${range.min === range.max ? range.min : `${range.min} to ${range.max}`}; fewer if another client spent from it`
  if (range.min !== range.max) return unknown(`${why}: --rate counts`, { assumed })
  if (range.min > requests) return unknown(`${why}, more than the interface says: --rate counts`, { assumed })
  return say('likely', range.min, why)
}

/** A 429 of the window's limit right after a header that said that requests remain. */
function isContradicted(parts: Parts): boolean {
  const all = parts.exchanges()
  return parts.throttles().some(({ refused, waitedMs }) => {
    const before = all.slice(0, all.indexOf(refused)).findLast(({ answer }) => remainingOf(answer) !== null)
    return waitedMs > shortWaitMs && before !== undefined && (remainingOf(before.answer) ?? 0) > 1
  })
}

/** An answer that says how much of the limit remains, or a request that may have counted without saying so. */
export interface Observation {
  /** When the service may have counted it: between the request and its answer. */
  fromMs: number
  toMs: number
  /** Whether the limit counts it; null if that is not known. */
  counts: boolean | null
  /** Null if it was not said. */
  remaining: number | null
}

/**
 * The requests that the limit counts, as far as `header` has shown, and what remained after each. If each token has a limit, it is
 * that of the first token or of the last. Pure.
 */
export function usedRequests(
  exchanges: readonly Exchange[],
  header: Header,
  which: 'first' | 'last' = 'first',
): Observation[] {
  const yesOrNo = (finding: Finding, yes: string) => (finding.found === null ? null : finding.found === yes)
  const polls = yesOrNo(judgeCounted(header, kinds.poll), 'yes')
  const failures = yesOrNo(judgeCounted(header, kinds.refused), 'yes')
  const orders = yesOrNo(judgeCounted(header, kinds.order), 'shared')
  const { scope, counts: tokens } = readTokens(header)
  const oneToken = exchanges.flatMap(({ answer }) => accessTokenIn(answer) ?? []).at(which === 'first' ? 0 : -1)
  const all = (...each: (boolean | null)[]) => (each.includes(false) ? false : each.includes(null) ? null : true)
  const countsOf = ({ accessToken, path, method, answer }: Exchange): boolean | null => {
    if (answer.kind === 'no-answer') return null
    // A limit of each token cannot count the request that brings the token.
    if (accessToken === null) return scope === 'token' ? false : tokens
    if (answer.status === 429 || answer.status === 401 || scope === null) return null
    if (scope === 'token' && accessToken !== oneToken) return false
    return all(
      method === 'GET' ? polls : true,
      isSuccess(answer) ? true : failures,
      path.includes(resources.orders.path) ? orders : true,
    )
  }
  return exchanges.map((exchange) => {
    const { accessToken, method, path, answer } = exchange
    const isRecord = method === 'POST' && path.includes(resources.data.path) && isSuccess(answer)
    const isOfThis = isRecord && (scope !== 'token' || accessToken === oneToken)
    return {
      fromMs: exchange.startedAtMs,
      toMs: endedAtMs(exchange),
      counts: countsOf(exchange),
      remaining: isOfThis ? remainingOf(answer) : null,
    }
  })
}

/** The limits that explain what remained and what had been used, until something may have been freed; null if none does. Pure. */
export function limitByHeader(seen: readonly Observation[], windowMs: number): { min: number; max: number } | null {
  const sinceMs = seen[0]?.fromMs ?? 0
  let [min, max] = [0, Number.POSITIVE_INFINITY]
  let [used, perhaps] = [0, 0]
  let last = Number.POSITIVE_INFINITY
  for (const { toMs, counts, remaining } of seen) {
    if (toMs >= sinceMs + windowMs) break
    if (counts === true) used++
    if (counts === null) perhaps++
    if (remaining === null) continue
    if (remaining > last) break
    last = remaining
    min = Math.max(min, remaining + used)
    max = Math.min(max, remaining + used + perhaps)
  }
  return min <= max && max < Number.POSITIVE_INFINITY ? { min, max } : null
}

/** Pure. */
export function judgeRateThrottled(counts: Counts | null): Finding {
  const assumed = 'either: nothing is sent during the pause after a 429'
  const read = counts === null ? null : readCounts(counts)
  if (counts === null || read === null) return unknown('the limit was not counted to: --rate does', { assumed })
  const { between } = counts
  const why = `after ${between.refused} of ${between.sent} requests were refused between them, the counts to the limit were ${counts.counts.map(({ taken }) => taken).join(' and ')}`
  if (read.throttledCount === null) return unknown(why, { assumed })
  const advice = read.throttledCount
    ? ['give every other client of these credentials a backoff: each 429 makes the next wait longer']
    : []
  return likely(read.throttledCount ? 'yes' : 'no', why, { assumed, advice })
}

export const askRateThrottled = async (parts: Parts): Promise<Finding> => judgeRateThrottled(await countsOf(parts))

/** Pure. @param throttles those that were waited for on the way */
export function judgeRateRefusal(exchanges: readonly Exchange[], throttles: readonly Throttle[]): Finding {
  const assumed = '429, with Retry-After or without'
  const refused = exchanges.flatMap(({ answer }) => (isThrottled(answer) && answer.kind === 'response' ? [answer] : []))
  const [first] = refused
  if (first === undefined) return unknown('no request met the limit: --rate goes to it', { assumed })
  const forms = [...new Set(refused.map(({ headers }) => formOf(headers['retry-after']?.trim())))]
  const waited = throttles.map(({ waitedMs }) => showMs(waitedMs)).join(', ')
  const why = `${refused.length} requests: ${lineOf(first)}; Retry-After: ${first.headers['retry-after'] ?? 'none'}${waited === '' ? '' : `; let in after ${waited}`}`
  if (forms.length > 1) return unknown(`${why}; in several forms: ${forms.join(', ')}`, { assumed })
  return found(refused.length > 1 ? 'sure' : 'likely', `429, Retry-After: ${forms[0]}`, why, { assumed })
}

function formOf(header: string | undefined): 'none' | 'seconds' | 'date' | 'unreadable' {
  if (header === undefined) return 'none'
  if (/^\d+$/.test(header)) return 'seconds'
  return retryAfterMs(header, 0) === null ? 'unreadable' : 'date'
}

/** Pure. */
export function judgeRateHeader(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: it is used if it is there'
  const groups = Object.entries(
    Object.groupBy(
      exchanges.filter(({ answer }) => answer.kind === 'response'),
      groupOf,
    ),
  )
  const shares = groups.map(([name, all = []]) => {
    const having = all.filter(({ answer }) => remainingOf(answer) !== null).length
    const share = having === 0 ? 'none' : having === all.length ? 'all' : 'some'
    return { name, share, size: all.length, text: `${name}: ${having} of ${all.length}` }
  })
  const why = shares.map(({ text }) => text).join(', ')
  if (shares.length === 0) return unknown('nothing was answered', { assumed })
  const certainty = shares.every(({ name, size }) => size > 1 || name === 'tokens') ? 'sure' : 'likely'
  const having = shares.filter(({ share }) => share === 'all').map(({ name }) => name)
  const some = shares.filter(({ share }) => share === 'some').map(({ name }) => `some ${name}`)
  const success = shares.find(({ name }) => name === 'successes')?.share
  const refusal = shares.find(({ name }) => name === 'refusals')?.share
  const isOnNone = having.length + some.length === 0
  const on = isOnNone ? 'none' : refusal === 'all' && (success === 'all' || success === undefined) ? 'all' : 'some'
  const contract: Finding['contract'] = refusal === undefined ? {} : { rate_remaining: on }
  if (isOnNone)
    return found(certainty, 'none', why, {
      assumed,
      contract,
      advice: ['let no other client spend from the same limit: the daemon could not notice it before a 429'],
    })
  return found(certainty, shares.every(({ share }) => share === 'all') ? 'all' : [...having, ...some].join(', '), why, {
    assumed,
    contract,
  })
}

function groupOf({ path, answer }: Exchange): string {
  if (path.endsWith('/oauth/token')) return 'tokens'
  if (answer.kind === 'response' && answer.status === 401) return 'unauthorized'
  return isSuccess(answer) ? 'successes' : 'refusals'
}

/** Records with pauses between, until what was used at first has left the window as it is configured. */
export const windowSample: Sample<null> = {
  name: 'records over two windows',
  requestsMax: 8,
  recordsMax: 8,
  samples: [headerSample],
  needs: 'slow',
  async take(parts) {
    if (doubtOf(await parts.sample(headerSample)) !== null) return null
    const { windowMs } = parts.config.rateLimit
    const startMs = parts.nowMs()
    // Halves of a window, so that between two looks one half has left it and another has not.
    for (const share of [0, 0.02, 0.5, 0.52, 1.25, 1.27, 1.75, 1.77]) {
      await parts.waitMs(Math.max(0, startMs + share * windowMs - parts.nowMs()))
      await submit(parts)
    }
    return null
  },
}

const usualMs = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 3_600].map((seconds) => seconds * 1_000)

export async function askRateWindow(parts: Parts): Promise<Finding> {
  const { windowMs } = parts.config.rateLimit
  const assumed = `any kind, of ${windowMs / 1000} s (RATE_LIMIT_WINDOW_SECONDS)`
  if (!parts.given.slow) return unknown('the limit was not watched over two windows: --slow does', { assumed })
  const header = await parts.sample(headerSample)
  const doubt = doubtOf(header)
  return doubt === null
    ? judgeRateWindow(usedRequests(parts.exchanges(), header, 'last'), windowMs)
    : unknown(doubt, { assumed })
}

/** Pure. @param windowMs as it is configured */
export function judgeRateWindow(all: readonly Observation[], windowMs: number): Finding {
  const assumed = `any kind, of ${windowMs / 1000} s (RATE_LIMIT_WINDOW_SECONDS)`
  const seen = all.filter(({ counts }) => counts !== false)
  if (seen.some(({ counts }) => counts === null))
    return unknown('it is not known which requests the limit counts', { assumed })
  const said = seen.flatMap(({ remaining }) => remaining ?? [])
  if (said.length < 4) return unknown(noHeader, { assumed })
  const why = `remaining: ${said.join(', ')}`
  const isFreed = said.some((remaining, i) => i > 0 && remaining >= (said[i - 1] ?? 0))
  if (!isFreed && (seen.at(-1)?.fromMs ?? 0) - (seen[0]?.toMs ?? 0) < windowMs)
    return unknown(`${why}: watched for less than a window`, { assumed })
  if (!isFreed)
    return likely('longer', `${why}: nothing was freed`, {
      assumed,
      differs: true,
      cannot: `the window is longer than ${windowMs / 1000} s: ask for its length and set RATE_LIMIT_WINDOW_SECONDS, or the service will refuse requests`,
    })
  const fits = fitWindows(seen, [...new Set([windowMs, ...usualMs])])
  const [kind, other] = [...new Set(fits.map(({ kind }) => kind))]
  if (kind === undefined || other !== undefined)
    return unknown(`${why}: no window, or more than one kind, explains that`, { assumed })
  const lengths = fits.map((fit) => fit.windowMs)
  if (lengths.includes(windowMs)) return likely(`${kind}, ${windowMs / 1000} s`, why, { assumed })
  const longest = String(Math.max(...lengths) / 1000)
  const set = [
    { variable: 'RATE_LIMIT_WINDOW_SECONDS', value: longest, why: 'what remained came back after that time' },
  ]
  return likely(`${kind}, ${longest} s`, why, { assumed, differs: true, set })
}

/** A window that explains every answer. */
interface WindowFit {
  kind: 'sliding' | 'fixed'
  windowMs: number
}

/** How much of the limit was used when an answer came, at least and at most. */
interface Used {
  min: number
  max: number
}

const phases = 120
const freedMin = 2

/**
 * The windows, among those of these lengths, under which what remained and what had been used add up to one limit at each answer.
 * A window under which nothing had been freed yet explains nothing, and does not count. Pure.
 *
 * @param seen requests that the limit counts, in their order
 */
export function fitWindows(
  seen: readonly Pick<Observation, 'fromMs' | 'toMs' | 'remaining'>[],
  windowsMs: readonly number[],
): WindowFit[] {
  const sliding = (windowMs: number) =>
    seen.map(({ fromMs, toMs }, i): Used => {
      const before = seen.slice(0, i + 1)
      return {
        min: before.filter((each) => each.fromMs > toMs - windowMs).length,
        max: before.filter((each) => each.toMs > fromMs - windowMs).length,
      }
    })
  // The boundaries may lie anywhere: every phase is tried.
  const fixed = (windowMs: number, phase: number) => {
    const windowOf = (ms: number) => Math.floor((ms - (phase / phases) * windowMs) / windowMs)
    return seen.map(({ fromMs, toMs }, i): Used => {
      const before = seen.slice(0, i + 1)
      const [early, late] = [windowOf(fromMs), windowOf(toMs)]
      return {
        min: before.filter((each) => windowOf(each.fromMs) === late && early === late).length || 1,
        max: before.filter((each) => windowOf(each.toMs) >= early).length,
      }
    })
  }
  return windowsMs.flatMap((windowMs) => [
    ...(explains(seen, sliding(windowMs)) ? [{ kind: 'sliding' as const, windowMs }] : []),
    ...(Array.from({ length: phases }, (_, phase) => phase).some((phase) => explains(seen, fixed(windowMs, phase)))
      ? [{ kind: 'fixed' as const, windowMs }]
      : []),
  ])
}

function explains(seen: readonly Pick<Observation, 'remaining'>[], used: readonly Used[]): boolean {
  let [least, most, freed] = [0, Number.POSITIVE_INFINITY, 0]
  for (const [i, { remaining }] of seen.entries()) {
    const { min, max } = used[i] ?? { min: 0, max: 0 }
    freed = Math.max(freed, i + 1 - max)
    if (remaining === null) continue
    least = Math.max(least, remaining + min)
    most = Math.min(most, remaining + max)
  }
  return freed >= freedMin && least <= most
}
