import { serviceResources } from '../../resources.ts'
import { accessTokenIn, describeAnswer, type Exchange, endedAtMs, isSuccess, isThrottled } from '../exchange.ts'
import {
  type Finding,
  likelyFinding,
  NoUsableAnswer,
  type QuestionContext,
  type Sample,
  type Setting,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import { shortThrottleWaitMs } from '../sender.ts'
import { findAcceptedRecordShape, idempotencyKeyHeaders, renderTestRecordBody } from '../testRecord.ts'

/** Finds two limits: the limit per second by bursts of requests, and the limit of the window by two counts. */

/** Requests in a burst: more than a limit that refills gradually usually lets through at once. */
const atOnce = 25
/**
 * Pauses before the bursts. After each pause, a limit per second lets the same number through. A limit that refills
 * gradually does not.
 */
const pausesMs = [shortThrottleWaitMs, 1_300, shortThrottleWaitMs]

const burstsSample: Sample<readonly number[]> = {
  name: `${atOnce} requests at once`,
  async take(parts) {
    const send = await createRecordSender(parts)
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

/** The record is sent even if no request is free. */
async function createRecordSender(parts: QuestionContext): Promise<() => Promise<Exchange>> {
  const shape = await findAcceptedRecordShape(parts)
  const { path } = serviceResources.data
  return () => {
    const [body, headers] = [renderTestRecordBody(parts, shape), idempotencyKeyHeaders(shape.key)]
    return parts.call({ method: 'POST', path, body, headers, beyondLimit: true })
  }
}

/** Null if a burst was let in whole, or if the limit of the window was reached. */
function fewestLetInAtOnce(bursts: readonly number[]): number | null {
  const least = Math.min(...bursts)
  return bursts.length === 0 || least === 0 || bursts.includes(atOnce) ? null : least
}

interface RateLimit {
  requests: number
  windowMs: number
}

export function judgePerSecondLimit(
  letInPerBurst: readonly number[],
  mostPerSecond: number,
  configured: RateLimit,
): Finding {
  const why = `of ${atOnce} requests at once, ${letInPerBurst.join(', then ')} were let in; at most ${mostPerSecond} within a second`
  const least = fewestLetInAtOnce(letInPerBurst)
  if (letInPerBurst.length === 1 && letInPerBurst[0] === atOnce) return likelyFinding('none', why)
  if (least === null)
    return unknownFinding(
      `${why}; the limit of the window was reached, so this does not show whether there is a limit per second`,
    )
  const set = bothLimits(configured, least)
  if (least === 1 || letInPerBurst.filter((letIn) => letIn === least).length < 2)
    return unknownFinding(
      `${why}; this does not show whether the limit is per second: such a limit lets the same number, more than one, through in each burst`,
      { set },
    )
  return sureFinding(`${least} a second`, why, { differs: true, set })
}

export async function askPerSecondLimit(parts: QuestionContext): Promise<Finding> {
  const times = parts.exchanges.flatMap(({ answer, startedAtMs }) => (isSuccess(answer) ? [startedAtMs] : []))
  const peak = Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
  return judgePerSecondLimit(await parts.sample(burstsSample), peak, parts.config.rateLimit)
}

/** Chooses a shorter window for the requests that one second allows, so that its windows together stay within `limit`. */
function bothLimits({ requests: limit, windowMs }: RateLimit, second: number): Setting[] {
  const requests = Math.min(second, limit)
  const windows = Math.max(1, Math.floor(limit / requests))
  const why = `the service lets in ${second} at once and ${limit} in ${windowMs / 1000} s: ${requests} per window of the new length keep both limits`
  return [
    { variable: 'RATE_LIMIT_REQUESTS', value: String(requests), why },
    { variable: 'RATE_LIMIT_WINDOW_SECONDS', value: String(Math.max(2, Math.ceil(windowMs / 1000 / windows))), why },
  ]
}

/** Counted after a window without requests. */
interface RequestsUntilLimit {
  letIn: number
  /** False if the limit was not reached within a window. */
  isLimitReached: boolean
  /** Token requests during the count, which may use the limit, too. */
  tokenRequests: number
  /** What followed the first 429; null if there was none. */
  refill: Refill | null
}

/** A limit that gives requests back one by one refuses some, lets a few in after a moment, and so on. */
interface Refill {
  /** Requests that were let in before the first 429, and in how long. */
  letInBefore: number
  beforeMs: number
  /** The same until the last 429. */
  letInAfter: number
  afterMs: number
  /** How often requests were let in again before another 429. */
  rounds: number
}

/** Two or three counts. After the first, extra requests follow. */
export interface LimitMeasurement {
  counts: readonly RequestsUntilLimit[]
  /** `stayedInWindow` is true if they were in the window throughout the second count. */
  extraRequests: { sent: number; refused: number; stayedInWindow: boolean }
}

const betweenCounts = 4
const countMaxOf = ({ requests }: RateLimit) => Math.max(130, Math.ceil(requests * 1.3))

const limitCountsSample: Sample<LimitMeasurement> = {
  name: 'requests until the limit is reached, twice',
  async take(parts) {
    const { windowMs } = parts.config.rateLimit
    const send = await createRecordSender(parts)
    const gapMs = 1_200 / (fewestLetInAtOnce(await parts.sample(burstsSample)) ?? Number.POSITIVE_INFINITY)
    const lastEndMs = () => Math.max(...parts.exchanges.map(endedAtMs))
    const waitUntilMs = (ms: number) => parts.waitMs(Math.max(0, ms - parts.nowMs()))
    await waitUntilMs(lastEndMs() + windowMs + 1_000)
    const startedMs = parts.nowMs()
    const first = await countToLimit(parts, send, gapMs)
    const tookMs = lastEndMs() - startedMs
    const secondMs = nextStartMs(startedMs, 1 / 2, lastEndMs(), windowMs)
    // The extra requests are late enough to stay in the window until the second count ends. They are early enough that
    // the first count still uses the limit up. The slack allows for slow answers.
    const slackMs = windowMs / 15
    await waitUntilMs(Math.min(startedMs + windowMs - slackMs, secondMs - windowMs + 2 * tookMs + slackMs))
    const betweenMs = parts.nowMs()
    let refused = 0
    if (first.isLimitReached)
      for (let i = 0; i < betweenCounts; i++) refused += isThrottled((await send()).answer) ? 1 : 0
    await waitUntilMs(secondMs)
    const second = await countToLimit(parts, send, gapMs)
    const sent = first.isLimitReached ? betweenCounts : 0
    const extraRequests = { sent, refused, stayedInWindow: lastEndMs() < betweenMs + windowMs }
    const two: LimitMeasurement = { counts: [first, second], extraRequests }
    const isWhole = second.letIn === 0 || !(first.isLimitReached || second.isLimitReached)
    if (isWhole || (tookMs < windowMs / 4 && inferLimitFromCounts(two)?.isAgreed)) return two
    await waitUntilMs(nextStartMs(secondMs, 1 / 3, lastEndMs(), windowMs))
    return { counts: [first, second, await countToLimit(parts, send, gapMs)], extraRequests }
  },
}

/**
 * Chooses the start of the next count: a window after the last request, and in another part of a fixed window than the
 * previous count. Otherwise a window could end during both counts and make both too large alike.
 */
function nextStartMs(startedMs: number, share: number, lastEndMs: number, windowMs: number): number {
  const windows = Math.ceil((lastEndMs + 1_000 - startedMs) / windowMs + 1 - share)
  return startedMs + (windows + share) * windowMs
}

/** Counts for one window at most, because a longer count would cover two windows. */
async function countToLimit(
  parts: QuestionContext,
  send: () => Promise<Exchange>,
  gapMs: number,
): Promise<RequestsUntilLimit> {
  const { rateLimit } = parts.config
  const before = parts.exchanges.length
  const untilMs = parts.nowMs() + rateLimit.windowMs
  const startedMs = parts.nowMs()
  let [letIn, isLimitReached] = [0, false]
  const throttles: { letIn: number; atMs: number }[] = []
  while (!isLimitReached && letIn < countMaxOf(rateLimit) && parts.nowMs() < untilMs) {
    if (gapMs > 0) await parts.waitMs(gapMs)
    let { answer } = await send()
    if (isThrottled(answer)) {
      throttles.push({ letIn, atMs: parts.nowMs() })
      await parts.waitMs(shortThrottleWaitMs)
      answer = (await send()).answer
    }
    if (answer.kind === 'no-answer') throw new NoUsableAnswer(describeAnswer(answer))
    isLimitReached = isThrottled(answer)
    if (!isLimitReached) letIn++
  }
  const since = parts.exchanges.slice(before)
  return {
    letIn,
    isLimitReached,
    tokenRequests: since.filter(({ answer }) => accessTokenIn(answer) !== null).length,
    refill: refillOf(throttles, startedMs),
  }
}

/** From the first 429 to the last, because a wait without requests follows that. */
function refillOf(throttles: readonly { letIn: number; atMs: number }[], startedMs: number): Refill | null {
  const [first, last] = [throttles[0], throttles.at(-1)]
  if (first === undefined || last === undefined) return null
  return {
    letInBefore: first.letIn,
    beforeMs: first.atMs - startedMs,
    letInAfter: last.letIn - first.letIn,
    afterMs: last.atMs - first.atMs,
    rounds: throttles.length - 1,
  }
}

/** A limit that refills gradually: a token bucket. */
interface Bucket {
  atOnce: number
  perMs: number
  /** True if all counts come close to these numbers. */
  isAgreed: boolean
}

/** Fewer rounds may be those of a fixed window that ended meanwhile. */
const roundsMin = 3

/** Null unless each count shows a limit that refills gradually. The rate is the lower of both. */
export function inferBucket(counts: readonly Pick<RequestsUntilLimit, 'refill'>[]): Bucket | null {
  const buckets = counts.map(({ refill }): Omit<Bucket, 'isAgreed'> | null => {
    if (refill === null || refill.rounds < roundsMin || refill.afterMs <= 0) return null
    const perMs = refill.letInAfter / refill.afterMs
    const atOnce = Math.max(1, Math.floor(refill.letInBefore - perMs * refill.beforeMs))
    // A limit of a short window lets in as many after each wait as at first.
    return refill.letInAfter / refill.rounds < atOnce * 0.7 ? { atOnce, perMs } : null
  })
  const found = buckets.filter((bucket) => bucket !== null)
  if (found.length === 0 || found.length < counts.length) return null
  const atOnce = Math.min(...found.map((bucket) => bucket.atOnce))
  const perMs = Math.min(...found.map((bucket) => bucket.perMs))
  const isNear = (one: number, other: number) => one <= other * 1.15 + 1
  const isAgreed =
    found.length > 1 &&
    found.every((bucket) => isNear(bucket.atOnce, atOnce) && isNear(bucket.perMs * 60_000, perMs * 60_000))
  return { atOnce, perMs, isAgreed }
}

/** Any window of the new length takes what the limit lets in at once, so that the sum keeps the rate. */
function judgeBucket({ atOnce, perMs, isAgreed }: Bucket, configured: RateLimit): Finding {
  const perWindow = Math.floor(perMs * configured.windowMs)
  const seconds = configured.windowMs / 1_000
  const why = `the service let in ${atOnce} requests at once, and then about ${perWindow} in ${seconds} s, a few at a time`
  const requests = Math.min(atOnce, configured.requests)
  const isWithin = requests === configured.requests && perWindow >= requests
  const set = [
    { variable: 'RATE_LIMIT_REQUESTS', value: String(requests), why },
    { variable: 'RATE_LIMIT_WINDOW_SECONDS', value: String(Math.max(2, Math.ceil(requests / perMs / 1_000))), why },
  ]
  return (isAgreed ? sureFinding : likelyFinding)(`${atOnce} at once, then ${perWindow} in ${seconds} s`, why, {
    differs: !isWithin,
    set: isWithin ? [] : set,
  })
}

interface LimitFromCounts {
  limit: number
  /** True if two counts agree. One count may be too large, because a window ended during the count. */
  isAgreed: boolean
  /** True if refused requests use the limit, too; null if this cannot be seen. */
  isRefusalCounted: boolean | null
}

export function inferLimitFromCounts({ counts, extraRequests }: LimitMeasurement): LimitFromCounts | null {
  const [first, second] = counts
  const reached = counts.filter(({ isLimitReached, letIn }) => isLimitReached && letIn > 0)
  if (first === undefined || reached.length === 0) return null
  // The extra requests may lower the second count: the accepted ones use the limit, the refused ones may use it.
  const missing = second?.isLimitReached ? first.letIn - second.letIn : 0
  const extra =
    missing > 0 && [extraRequests.sent - extraRequests.refused, extraRequests.sent].includes(missing) ? missing : 0
  const numberOf = (count: RequestsUntilLimit) => count.letIn + (count === second ? extra : 0)
  const limit = Math.min(...reached.map(numberOf))
  // A refused request of which the next was let in may use the limit, too, so a count with one is not exact.
  const isExact = ({ tokenRequests, refill }: RequestsUntilLimit) => tokenRequests === 0 && (refill?.rounds ?? 0) === 0
  const same = reached.filter((count) => numberOf(count) === limit && isExact(count))
  const isSeen =
    extraRequests.refused > 0 &&
    extraRequests.stayedInWindow &&
    [first, second].every((count) => same.some((one) => one === count))
  return { limit, isAgreed: same.length > 1, isRefusalCounted: isSeen ? extra === extraRequests.sent : null }
}

export async function askRateLimit(parts: QuestionContext): Promise<Finding> {
  const { rateLimit } = parts.config
  const seen = await parts.sample(limitCountsSample)
  const finding = judgeRateLimit(seen, rateLimit)
  if (inferBucket(seen.counts) !== null) return finding
  const second = fewestLetInAtOnce(await parts.sample(burstsSample))
  if (second === null) return finding
  const requests = Number(finding.set[0]?.value ?? rateLimit.requests)
  return { ...finding, set: bothLimits({ ...rateLimit, requests }, second) }
}

export function judgeRateLimit(seen: LimitMeasurement, configured: RateLimit): Finding {
  const { requests, windowMs } = configured
  const bucket = inferBucket(seen.counts)
  if (bucket !== null) return judgeBucket(bucket, configured)
  const said = seen.counts
    .map(({ letIn, isLimitReached }) => (isLimitReached ? letIn : `more than ${letIn}`))
    .join(' and ')
  const why = `requests that the service accepted in a row: ${said}`
  const read = inferLimitFromCounts(seen)
  if (read === null) {
    const isFull = seen.counts.length > 1 && seen.counts.every(({ letIn }) => letIn >= countMaxOf(configured))
    if (!isFull) return unknownFinding(`${why} within ${windowMs / 1000} s: the limit was not reached`)
    return likelyFinding(`more than ${seen.counts[0]?.letIn}`, why, { differs: true })
  }
  const { limit, isAgreed } = read
  // The smaller number is set, so that the daemon stays below the limit.
  const set = limit < requests ? [{ variable: 'RATE_LIMIT_REQUESTS', value: String(limit), why }] : []
  const isWindowLonger = seen.counts.length === 2 && seen.counts[1]?.letIn === 0
  if (!isAgreed && !isWindowLonger)
    return unknownFinding(
      `${why}; the counts differ, or a token was requested meanwhile, which may use the limit, too`,
      { set },
    )
  // Too high a limit brings refusals in production. Too low a limit only costs time.
  const advice =
    limit > requests ? [`production may allow ${limit}, too. Ask its operator, then set RATE_LIMIT_REQUESTS`] : []
  return (isAgreed ? sureFinding : likelyFinding)(String(limit), why, { differs: limit !== requests, set, advice })
}

export function judgeRateWindow(seen: LimitMeasurement, windowMs: number): Finding {
  const seconds = windowMs / 1000
  const [first, second] = seen.counts
  if (!first?.isLimitReached || second === undefined) return unknownFinding('the limit was not reached')
  const why = `${first.letIn} requests were let in until the limit was reached, and ${second.letIn} more after ${seconds} s`
  if (inferLimitFromCounts(seen)?.isAgreed) return likelyFinding(`up to ${seconds} s`, why)
  if (second.letIn > 0) return unknownFinding(why)
  return likelyFinding(`longer than ${seconds} s`, why, {
    differs: true,
    cannot: `the window is longer than ${seconds} s: ask for its length and set RATE_LIMIT_WINDOW_SECONDS, or the service refuses requests`,
  })
}

export const askRateWindow = async (parts: QuestionContext): Promise<Finding> =>
  judgeRateWindow(await parts.sample(limitCountsSample), parts.config.rateLimit.windowMs)

export async function askWhetherThrottledRequestsUseLimit(parts: QuestionContext): Promise<Finding> {
  const seen = await parts.sample(limitCountsSample)
  const doesCount = inferLimitFromCounts(seen)?.isRefusalCounted ?? null
  const counts = seen.counts.map(({ letIn }) => letIn).join(' and ')
  const why = `${seen.extraRequests.refused} of ${seen.extraRequests.sent} more requests were refused between two counts, which let in ${counts} requests`
  if (doesCount === null) return unknownFinding(why)
  if (!doesCount) return likelyFinding('no', why)
  const advice = ['give every other client of these credentials a backoff: each 429 makes the next wait longer']
  return likelyFinding('yes', why, { advice })
}
