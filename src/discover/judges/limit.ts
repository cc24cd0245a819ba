import { serviceResources } from '../../resources.ts'
import { retryAfterMs } from '../../service/client.ts'
import {
  accessTokenIn,
  describeSeen,
  type Exchange,
  endedAtMs,
  isSuccess,
  isThrottled,
  rateRemainingOf,
} from '../exchange.ts'
import {
  certaintyOf,
  createFinding,
  type Finding,
  likelyFinding,
  type Setting,
  showMs,
  sureFinding,
  unknownFinding,
} from '../finding.ts'
import { NoAnswer, type QuestionParts, type Sample, type Throttle } from '../question.ts'
import { shortThrottleWaitMs } from '../sender.ts'
import { keyHeaders, recordBody, requireRecordShape } from '../testRecord.ts'
import {
  findReadableTransactionPath,
  judgeIfRequestKindCounts,
  limitFromRemainingHeader,
  observeLimitUse,
  remainingHeaderSample,
  whyHeaderIsNotTrusted,
} from './limitHeader.ts'

/**
 * Finds how large the limit is. A limit of a second shows itself with requests at once; the limit of the window is
 * counted twice.
 */

const atOnce = 20
/**
 * Pauses before the bursts. A limit of a second lets the same number through after each pause; one that refills does
 * not.
 */
const pausesMs = [shortThrottleWaitMs, 1_300, shortThrottleWaitMs]

export const unthrottledPerBurstSample: Sample<readonly number[]> = {
  name: `${atOnce} requests at once`,
  requestsMax: pausesMs.length * atOnce,
  recordsMax: pausesMs.length * atOnce,
  samples: [remainingHeaderSample],
  async take(parts) {
    const send = await countedRequest(parts)
    const bursts: number[] = []
    for (const pauseMs of pausesMs) {
      await parts.waitMs(pauseMs)
      const answers = await Promise.all(Array.from({ length: atOnce }, () => send()))
      const letIn = answers.filter(({ answer }) => !isThrottled(answer)).length
      bursts.push(letIn)
      if (letIn === atOnce || letIn === 0) break
    }
    return bursts
  },
}

/** A request that the service accepts and the limit counts: a question if questions count, else a record. */
async function countedRequest(parts: QuestionParts): Promise<() => Promise<Exchange>> {
  const shape = await requireRecordShape(parts)
  const isPollCounted = judgeIfRequestKindCounts(await parts.sample(remainingHeaderSample), 'poll').found === 'yes'
  const path = isPollCounted ? await findReadableTransactionPath(parts) : null
  if (path !== null) return () => parts.call({ method: 'GET', path, beyondLimit: true })
  return () =>
    parts.call({
      ...{ method: 'POST', path: serviceResources.data.path, body: recordBody(parts, shape), beyondLimit: true },
      headers: keyHeaders(shape.key),
    })
}

/** The fewest that were let in at once; null if none was refused, or if the limit of the window was reached. */
export function fewestLetInAtOnce(bursts: readonly number[]): number | null {
  const least = Math.min(...bursts)
  return bursts.length === 0 || least === 0 || bursts.includes(atOnce) ? null : least
}

export function judgePerSecondLimit(bursts: readonly number[], peak: number): Finding {
  const assumed = 'none but the window'
  const why = `of ${atOnce} at once ${bursts.join(', then ')} were let in; at most ${peak} were let in within a second`
  const least = fewestLetInAtOnce(bursts)
  if (bursts.length === 1 && bursts[0] === atOnce) return likelyFinding('none', why, { assumed })
  if (least === null) return unknownFinding(`${why}; the limit of the window was reached`, { assumed })
  const advice = ['RATE_LIMIT_REQUESTS and RATE_LIMIT_WINDOW_SECONDS, as rate-limit sets them, keep this limit too']
  if (least === 1 || bursts.filter((letIn) => letIn === least).length < 2)
    return unknownFinding(`${why}; a limit per second lets the same number through each time`, { assumed, advice })
  return sureFinding(`${least} a second`, why, { assumed, differs: true, advice })
}

export async function askPerSecondLimit(parts: QuestionParts): Promise<Finding> {
  const times = parts.exchanges().flatMap(({ answer, startedAtMs }) => (isSuccess(answer) ? [startedAtMs] : []))
  const peak = Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
  return judgePerSecondLimit(await parts.sample(unthrottledPerBurstSample), peak)
}

/** Requests until the limit of the window, after a window without any. */
export interface Count {
  taken: number
  /** Requests for a token between the counts, which may count too. */
  tokens: number
  refused: boolean
}

/** Two counts to the limit with 429s between them, and a third if the two leave a doubt. */
export interface LimitCounts {
  counts: readonly Count[]
  /**
   * Requests sent while nothing was free, and how many of them were refused. `stayed`: they were in the window
   * throughout the next count.
   */
  between: { sent: number; refused: number; tokens: number; stayed: boolean }
}

const betweenCounts = 4
const countMaxOf = (requests: number) => Math.max(130, Math.ceil(requests * 1.3))
/** For the default limit of 100. If the limit is larger, --budget ends the count. */
const countMax = countMaxOf(100)

export const limitCountsSample: Sample<LimitCounts> = {
  name: 'requests until the limit is reached, twice',
  requestsMax: 4 * (countMax + 10) + betweenCounts,
  recordsMax: 4 * countMax,
  samples: [unthrottledPerBurstSample],
  needs: 'rate',
  async take(parts) {
    const { windowMs } = parts.config.rateLimit
    const send = await countedRequest(parts)
    const gapMs = 1_200 / (fewestLetInAtOnce(await parts.sample(unthrottledPerBurstSample)) ?? Number.POSITIVE_INFINITY)
    const lastEndMs = () => Math.max(...parts.exchanges().map(endedAtMs))
    const waitUntilMs = (ms: number) => parts.waitMs(Math.max(0, ms - parts.nowMs()))
    await waitUntilMs(lastEndMs() + windowMs + 1_000)
    let startedMs = parts.nowMs()
    let first = await countToLimit(parts, send, gapMs)
    // A fixed window that ends during the count lets twice as many in. So only a second count in a row shows that there
    // is no limit.
    if (!first.refused && (await countToLimit(parts, send, gapMs)).refused) {
      await waitUntilMs(lastEndMs() + windowMs + 1_000)
      startedMs = parts.nowMs()
      first = await countToLimit(parts, send, gapMs)
    }
    if (!first.refused) return { counts: [first], between: { sent: 0, refused: 0, tokens: 0, stayed: false } }
    const tookMs = lastEndMs() - startedMs
    const secondMs = nextStartMs(startedMs, 1 / 2, lastEndMs(), windowMs)
    // Late enough that these requests, if they count, are in the window throughout the second count, and before the
    // first count leaves it.
    const slackMs = windowMs / 15
    await waitUntilMs(Math.min(startedMs + windowMs - slackMs, secondMs - windowMs + 2 * tookMs + slackMs))
    const [betweenMs, before] = [parts.nowMs(), grantsIn(parts)]
    let refused = 0
    for (let i = 0; i < betweenCounts; i++) refused += isThrottled((await send()).answer) ? 1 : 0
    const tokens = grantsIn(parts) - before
    await waitUntilMs(secondMs)
    const second = await countToLimit(parts, send, gapMs)
    const stayed = lastEndMs() < betweenMs + windowMs
    const two: LimitCounts = { counts: [first, second], between: { sent: betweenCounts, refused, tokens, stayed } }
    if (second.taken === 0 || (tookMs < windowMs / 4 && readLimitCounts(two)?.fit === 'one')) return two
    await waitUntilMs(nextStartMs(secondMs, 1 / 3, lastEndMs(), windowMs))
    return { ...two, counts: [first, second, await countToLimit(parts, send, gapMs)] }
  },
}

/**
 * Chooses the start of the next count: a window after the last request, and in another part of a fixed window than the
 * previous count. Counts in which a window ends at the same point give the same number, and both are too large.
 */
function nextStartMs(startedMs: number, share: number, lastEndMs: number, windowMs: number): number {
  const windows = Math.ceil((lastEndMs + 1_000 - startedMs) / windowMs + 1 - share)
  return startedMs + (windows + share) * windowMs
}

/** Ends after a window, because a longer count is not of one window. */
async function countToLimit(parts: QuestionParts, send: () => Promise<Exchange>, gapMs: number): Promise<Count> {
  const { requests, windowMs } = parts.config.rateLimit
  const before = grantsIn(parts)
  const untilMs = parts.nowMs() + windowMs
  const count = (refused: boolean): Count => ({ taken, refused, tokens: grantsIn(parts) - before })
  let taken = 0
  while (taken < countMaxOf(requests) && parts.nowMs() < untilMs) {
    if (gapMs > 0) await parts.waitMs(gapMs)
    let { answer } = await send()
    if (isThrottled(answer)) {
      await parts.waitMs(shortThrottleWaitMs)
      answer = (await send()).answer
      if (isThrottled(answer)) return count(true)
    }
    if (answer.kind === 'no-answer') throw new NoAnswer(describeSeen(answer))
    taken++
  }
  return count(false)
}

const grantsIn = (parts: QuestionParts) =>
  parts.exchanges().filter(({ answer }) => accessTokenIn(answer) !== null).length

interface CountsRead {
  limit: number
  fit: 'one' | 'several' | 'none'
  /** True if the 429s between the counts counted; null if that cannot be seen. */
  throttledCount: boolean | null
}

/**
 * Finds the limit that explains both counts, with or without the tokens and the requests between them. If there is a
 * third count, the smallest must have come twice, because a window that ends in between makes a count too large. If no
 * limit explains them, returns the smallest count. Null if the limit was not reached.
 */
export function readLimitCounts({ counts, between }: LimitCounts): CountsRead | null {
  const [first, second, third] = counts
  if (first === undefined || !first.refused) return null
  if (second === undefined || first.taken === 0) return { limit: first.taken, fit: 'none', throttledCount: null }
  if (third !== undefined) {
    const two = readLimitCounts({ counts: [first, second], between })
    if (two?.fit === 'one' && third.refused && third.tokens === 0 && third.taken === two.limit) return two
    const reached = counts.filter(({ refused }) => refused)
    const limit = Math.min(...reached.map(({ taken }) => taken))
    const same = reached.filter(({ taken, tokens }) => taken === limit && tokens === 0)
    const fit = two?.fit === 'several' ? 'several' : same.length > 1 ? 'one' : 'none'
    return { limit, fit, throttledCount: null }
  }
  if (!second.refused) return { limit: first.taken, fit: 'none', throttledCount: null }
  // Accepted requests between the counts may have left the window, and refused ones may have counted.
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
  const isSeen = between.refused > 0 && between.stayed && fits.every(({ counted }) => counted === fit.counted)
  return { limit: fit.limit, fit: isOne ? 'one' : 'several', throttledCount: isSeen ? fit.counted : null }
}

const countsOf = async (parts: QuestionParts): Promise<LimitCounts | null> =>
  parts.given.rate ? parts.sample(limitCountsSample) : null

const notReached = 'the limit was not counted. --rate counts it'

export async function askRateLimit(parts: QuestionParts): Promise<Finding> {
  const { rateLimit } = parts.config
  const header = await parts.sample(remainingHeaderSample)
  const doubt =
    whyHeaderIsNotTrusted(header) ??
    (isContradicted(parts) ? 'a request was refused while the header said that some remained' : null)
  const range =
    doubt === null ? limitFromRemainingHeader(observeLimitUse(parts.exchanges(), header), rateLimit.windowMs) : null
  const finding = judgeRateLimit({ counts: await countsOf(parts), range, doubt, configured: rateLimit })
  const second = fewestLetInAtOnce(await parts.sample(unthrottledPerBurstSample))
  if (second === null) return finding
  const limit = finding.set.find(({ variable }) => variable === 'RATE_LIMIT_REQUESTS')?.value ?? rateLimit.requests
  return { ...finding, set: bothLimits(Number(limit), second, rateLimit.windowMs) }
}

/** A short window with as many requests as a second allows, which passes as often as the whole window allows. */
function bothLimits(limit: number, second: number, windowMs: number): Setting[] {
  const requests = Math.min(second, limit)
  const windows = Math.max(1, Math.floor(limit / requests))
  const why = `${second} at once and ${limit} in ${windowMs / 1000} s: ${requests} in this time keep both`
  return [
    { variable: 'RATE_LIMIT_REQUESTS', value: String(requests), why },
    { variable: 'RATE_LIMIT_WINDOW_SECONDS', value: String(Math.max(2, Math.ceil(windowMs / 1000 / windows))), why },
  ]
}

interface LimitSeen {
  counts: LimitCounts | null
  /** The limits that the header allows; null if it is missing or contradicts itself. */
  range: { min: number; max: number } | null
  doubt: string | null
  configured: { requests: number; windowMs: number }
}

/** A count wins. Without a count, takes the limit that explains every header. */
export function judgeRateLimit({ counts, range, doubt, configured }: LimitSeen): Finding {
  const { requests, windowMs } = configured
  const assumed = `${requests} (RATE_LIMIT_REQUESTS)`
  const lowered = (limit: number, why: string): Setting[] =>
    limit < requests && limit > 0 ? [{ variable: 'RATE_LIMIT_REQUESTS', value: String(limit), why }] : []
  const say = (certainty: 'sure' | 'likely', limit: number, why: string) =>
    createFinding(certainty, String(limit), why, {
      assumed,
      differs: limit !== requests,
      set: lowered(limit, why),
      // A limit that is too high brings refusals in production. One that is too low only costs time.
      advice:
        limit > requests ? [`production may allow ${limit}, too. Ask its operator, then set RATE_LIMIT_REQUESTS`] : [],
    })
  if (counts === null) {
    const why = `the used and remaining requests fit a limit of ${range?.min} to ${range?.max}, or less if another client spent from it`
    if (doubt !== null || range === null)
      return unknownFinding(
        `${doubt ?? 'the used and remaining requests contradict each other'}. --rate counts the limit`,
        {
          assumed,
        },
      )
    if (range.min !== range.max) return unknownFinding(`${why}. --rate counts the limit`, { assumed })
    if (range.min > requests)
      return unknownFinding(`${why}, more than the interface says. --rate counts the limit`, { assumed })
    return say('likely', range.min, why)
  }
  const said = counts.counts.map(({ taken, refused }) => (refused ? taken : `more than ${taken}`)).join(' and ')
  const why = `counted to the limit: ${said}`
  const [first, second, third] = counts.counts
  const read = readLimitCounts(counts)
  if (read === null) {
    if (first === undefined || first.tokens > 0 || first.taken < countMaxOf(requests))
      return unknownFinding(`${why} within ${windowMs / 1000} s: the limit was not reached`, { assumed })
    return likelyFinding(`more than ${first.taken}`, why, { assumed, differs: true })
  }
  if (read.fit === 'one') return say('sure', read.limit, why)
  if (first !== undefined && third === undefined && (second === undefined || second.taken === 0) && first.taken > 0)
    return say('likely', first.taken, why)
  // The smaller number is set, so that the daemon stays below the limit.
  const open = read.fit === 'several' ? 'which may be one or more higher, if tokens count' : 'which differ'
  return unknownFinding(`${why}, ${open}`, { assumed, set: lowered(read.limit, why) })
}

/** True if a 429 of the window's limit came right after a header that said that requests remain. */
function isContradicted(parts: QuestionParts): boolean {
  const all = parts.exchanges()
  return parts.throttles().some(({ refused, waitedMs }) => {
    const before = all.slice(0, all.indexOf(refused)).findLast(({ answer }) => rateRemainingOf(answer) !== null)
    return waitedMs > shortThrottleWaitMs && before !== undefined && (rateRemainingOf(before.answer) ?? 0) > 1
  })
}

export function judgeRateWindow(counts: LimitCounts | null, windowMs: number): Finding {
  const seconds = windowMs / 1000
  const assumed = `${seconds} s or less (RATE_LIMIT_WINDOW_SECONDS)`
  const read = counts === null ? null : readLimitCounts(counts)
  const [first, second] = counts?.counts ?? []
  if (read === null || first === undefined || second === undefined) return unknownFinding(notReached, { assumed })
  const why = `${first.taken} requests were let in, and ${second.taken} after ${seconds} s`
  if (read.fit !== 'none') return likelyFinding(`up to ${seconds} s`, why, { assumed })
  if (second.taken > 0) return unknownFinding(why, { assumed })
  return likelyFinding(`longer than ${seconds} s`, why, {
    assumed,
    differs: true,
    cannot: `the window is longer than ${seconds} s: ask for its length and set RATE_LIMIT_WINDOW_SECONDS, or the service refuses requests`,
  })
}

export const askRateWindow = async (parts: QuestionParts): Promise<Finding> =>
  judgeRateWindow(await countsOf(parts), parts.config.rateLimit.windowMs)

export function judgeIfThrottledRequestsCount(counts: LimitCounts | null): Finding {
  const assumed = 'either: nothing is sent during the pause after a 429'
  const read = counts === null ? null : readLimitCounts(counts)
  if (counts === null || read === null) return unknownFinding(notReached, { assumed })
  const { between } = counts
  const why = `${between.refused} of ${between.sent} requests were refused between two counts to the limit of ${counts.counts.map(({ taken }) => taken).join(' and ')}`
  if (read.throttledCount === null) return unknownFinding(why, { assumed })
  const advice = read.throttledCount
    ? ['give every other client of these credentials a backoff: each 429 makes the next wait longer']
    : []
  return likelyFinding(read.throttledCount ? 'yes' : 'no', why, { assumed, advice })
}

export const askIfThrottledRequestsCount = async (parts: QuestionParts): Promise<Finding> =>
  judgeIfThrottledRequestsCount(await countsOf(parts))

/** @param throttles the 429s after which the sender waited */
export function judgeThrottleAnswer(exchanges: readonly Exchange[], throttles: readonly Throttle[]): Finding {
  const assumed = '429, with Retry-After or without'
  const refused = exchanges.flatMap(({ answer }) => (isThrottled(answer) && answer.kind === 'response' ? [answer] : []))
  const [first] = refused
  if (first === undefined)
    return unknownFinding('no request met the limit. --rate sends requests until one does', { assumed })
  const forms = [...new Set(refused.map(({ headers }) => formOf(headers['retry-after']?.trim())))]
  const waited = throttles.map(({ waitedMs }) => showMs(waitedMs)).join(', ')
  const why = `${refused.length} requests: ${describeSeen(first)}; Retry-After: ${first.headers['retry-after'] ?? 'none'}${waited === '' ? '' : `; let in after ${waited}`}`
  if (forms.length > 1) return unknownFinding(`${why}; in several forms: ${forms.join(', ')}`, { assumed })
  return createFinding(certaintyOf(refused.length), `429, Retry-After: ${forms[0]}`, why, { assumed })
}

function formOf(header: string | undefined): 'none' | 'seconds' | 'date' | 'unreadable' {
  if (header === undefined) return 'none'
  if (/^\d+$/.test(header)) return 'seconds'
  return retryAfterMs({ 'retry-after': header }, 0) === null ? 'unreadable' : 'date'
}
