import type { DiscoverConfig } from '../config.ts'
import { endpointAt, requestHeaders, retryAfterMs } from '../service/client.ts'
import { findErrorCode, isServiceCode } from '../service/errorCode.ts'
import type { Http, HttpAnswer, HttpRequest } from '../service/http.ts'
import { readJson } from '../service/readJson.ts'
import {
  type AnsweredExchange,
  accessTokenIn,
  type Exchange,
  isSuccess,
  lineOf,
  type Response,
  type Seen,
  whyNoAnswer,
} from './exchange.ts'
import type { Finding } from './finding.ts'
import { tokenSample } from './firstCall.ts'
import {
  type Call,
  type Given,
  NoAnswer,
  type Parts,
  type Question,
  type Sample,
  Stopped,
  type Throttle,
} from './question.ts'
import { hideSecrets } from './savedExchanges.ts'
import type { Slots } from './slots.ts'

export interface PartsDeps {
  config: DiscoverConfig
  given: Given
  run: string
  http: Http
  slots: Slots
  /** The most requests in all. */
  budget: number
  nowMs(): number
  waitMs(ms: number): Promise<void>
  signal: AbortSignal
}

/** After this many requests in a row without an answer, or with 503, nothing more is sent. */
const unansweredMax = 3
/** How often a request that met a 5xx, or no answer, is sent in all. */
const triesMax = 3
const betweenTriesMs = 300
/** How many tokens may end while this asks. */
export const renewalsMax = 20
/** A 429 that lets the request in after this wait comes from a limit shorter than the window. */
export const shortWaitMs = 2_500

/** The parts, and how their owner has a question asked with them. */
export interface OwnedParts {
  parts: Parts
  /** Takes the samples that the question rests on, if they were not taken before, and asks the rest. */
  ask(question: Question): Promise<Finding>
  /** How many requests have been made. */
  requests(): number
  /** How many more may be. */
  left(): number
  isTaken(sample: Sample<unknown>): boolean
}

/** Asks questions of the service, and no more requests than the budget. */
export function createParts(deps: PartsDeps): OwnedParts {
  const { config, given, run } = deps
  const sending = createSending(deps)
  const taken = new Map<Sample<unknown>, Promise<unknown>>()
  const api = endpointAt(config.service.baseUrl)
  const issuer = endpointAt(config.service.authUrl)
  let token: string | null = null
  let renewals = 0
  let numbers = 0

  const parts: Parts = {
    config,
    given,
    run,
    get: (path) => answered({ method: 'GET', path }),
    post: (path, body, headers = {}) => answered({ method: 'POST', path, body, headers }),
    call,
    async askToken(clientSecret) {
      const form = { grant_type: 'client_credentials', client_id: config.service.clientId, client_secret: clientSecret }
      const exchange = await sending.send({
        method: 'POST',
        origin: issuer.origin,
        path: `${issuer.prefix}/oauth/token`,
        headers: { ...requestHeaders, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(form).toString(),
        accessToken: null,
        beyondLimit: false,
      })
      token = accessTokenIn(exchange.answer) ?? token
      return exchange
    },
    async token() {
      await parts.sample(tokenSample)
      return token ?? ''
    },
    async sample<T>(sample: Sample<T>) {
      const before = sending.asking
      const making = taken.get(sample) ?? make(sample)
      taken.set(sample, making)
      try {
        return (await making) as T
      } finally {
        sending.asking = before
      }
    },
    stop: sending.stop,
    exchanges: () => sending.exchanges,
    throttles: () => sending.throttles,
    nextNumber: () => numbers++,
    nowMs: deps.nowMs,
    waitMs: deps.waitMs,
  }

  /** Calls with the token that all share. If that token has ended, calls once more with another. */
  async function call({
    method,
    path,
    body,
    headers: more = {},
    accessToken,
    beyondLimit = false,
  }: Call): Promise<Exchange> {
    const type = method === 'POST' ? { 'content-type': 'application/json' } : {}
    const as = (token: string) => {
      const headers = { ...requestHeaders, authorization: `Bearer ${token}`, ...type, ...more }
      return sending.send({
        ...{ method, origin: api.origin, path: api.prefix + path, headers },
        ...{ body: body ?? null, accessToken: token, beyondLimit },
      })
    }
    if (accessToken !== undefined) return as(accessToken)
    const exchange = await as(await parts.token())
    if (!hasEnded(exchange, sending.exchanges) || renewals >= renewalsMax) return exchange
    renewals++
    const renewal = await parts.askToken(config.service.clientSecret)
    return accessTokenIn(renewal.answer) === null ? exchange : as(await parts.token())
  }

  /** Tries again after a 5xx that has no code of the service, and after no answer. @throws {NoAnswer} */
  async function answered(request: Call): Promise<AnsweredExchange> {
    for (let tries = 1; ; tries++) {
      const exchange = await call(request)
      const why = whyNoAnswer(exchange.answer)
      if (why === null) return exchange as AnsweredExchange
      const isTrouble = exchange.answer.kind === 'no-answer' || exchange.answer.status >= 500
      if (!isTrouble || tries === triesMax) throw new NoAnswer(why)
      await deps.waitMs(betweenTriesMs)
    }
  }

  async function make<T>(sample: Sample<T>): Promise<T> {
    sending.asking = sample.name
    await takeSamples(sample.samples)
    return sample.take(parts)
  }

  async function takeSamples(samples: readonly Sample<unknown>[]): Promise<void> {
    for (const sample of samples) if (isWanted(sample, given)) await parts.sample(sample)
  }

  return {
    parts,
    async ask(question) {
      sending.asking = question.name
      await takeSamples(question.samples)
      return question.run(parts)
    },
    requests: sending.requests,
    left: () => deps.budget - sending.requests(),
    isTaken: (sample) => taken.has(sample),
  }
}

/** Whether all that a sample needs was given. */
export const isWanted = ({ needs }: Sample<unknown>, given: Given): boolean =>
  needs === undefined || Boolean(given[needs])

/** A request with the token that it carries. */
type PaidRequest = Omit<HttpRequest, 'mayLeave'> & { accessToken: string | null; beyondLimit: boolean }

/** What has been sent, and the way to send more. */
function createSending(deps: PartsDeps) {
  const { config, slots } = deps
  const exchanges: Exchange[] = []
  const throttles: Throttle[] = []
  const secrets = new Set([config.service.clientSecret])
  let unanswered = 0
  let requests = 0
  let stopped: string | null = null
  /** Between two requests, once a limit shorter than the window was met. */
  let gapMs = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const sending = {
    /** The question or sample that is asked just now. */
    asking: '',
    exchanges,
    throttles,
    send,
    stop(why: string) {
      stopped ??= why
    },
    requests: () => requests,
  }
  return sending

  async function sendOnce({ accessToken, beyondLimit, ...request }: PaidRequest): Promise<Exchange> {
    for (;;) {
      if (deps.signal.aborted) throw new Stopped('it was interrupted')
      if (stopped !== null) throw new Stopped(stopped)
      if (requests >= deps.budget) throw new Stopped(`the ${deps.budget} requests of --budget were used up`)
      requests++ // before it is sent, because requests may go out side by side
      if (!beyondLimit && gapMs > 0) await deps.waitMs(Math.max(0, lastMs + gapMs - deps.nowMs()))
      const slot = await (beyondLimit ? takeNow(slots) : slots.take())
      if (slot.kind === 'none') {
        requests--
        throw new Stopped(slot.why)
      }
      const startedAtMs = deps.nowMs()
      lastMs = startedAtMs
      const answer = await deps.http.exchange({ ...request, mayLeave: slot.mayLeave }).finally(slot.done)
      if (answer === null) {
        requests--
        continue
      }
      const { method, origin, path, headers, body } = request
      const seen = seenOf(answer)
      const granted = accessTokenIn(seen)
      if (granted !== null) secrets.add(granted)
      const shown = withoutSecrets(seen, [...secrets])
      const exchange = {
        of: sending.asking,
        method,
        origin,
        path,
        headers,
        body,
        accessToken,
        startedAtMs,
        answer: shown,
      }
      exchanges.push(exchange)
      return exchange
    }
  }

  function end(why: string): never {
    sending.stop(why)
    throw new Stopped(why)
  }

  /** Sends a request. Waits after a 429, and stops if the service is down or something else answers. */
  async function send(request: PaidRequest): Promise<Exchange> {
    const exchange = await untilLetIn(request)
    const { answer } = exchange
    unanswered = answer.kind === 'no-answer' || isDown(answer) ? unanswered + 1 : 0
    if (answer.kind === 'no-answer') {
      if (unanswered >= unansweredMax) end(`${unansweredMax} requests in a row were not answered: ${answer.detail}`)
      return exchange
    }
    if (isDown(answer)) {
      const why = 'the service says that it is down (E003): ask again when it is up'
      if (answer.code === 'E003' || unanswered >= unansweredMax) end(why)
      throw new Stopped(why)
    }
    if (isElsewhere(exchange)) {
      const why = `something else than the service answered a POST: ${lineOf(answer)}`
      if (exchanges.some((each) => isPost(each) && isSuccess(each.answer) && !isElsewhere(each))) end(why)
      sending.stop(why)
    }
    return exchange
  }

  async function untilLetIn(request: PaidRequest): Promise<Exchange> {
    const first = await sendOnce(request)
    if (request.beyondLimit || !isThrottled(first.answer)) return first
    const sinceMs = deps.nowMs()
    const patienceMs = 2 * config.rateLimit.windowMs + 5_000
    let last = first
    for (let backoffMs = 1_000; ; backoffMs *= 2) {
      const askedMs =
        last.answer.kind === 'response' ? retryAfterMs(last.answer.headers['retry-after'], deps.nowMs()) : null
      const waitMs = Math.max(askedMs ?? 0, backoffMs) + 100
      if (deps.nowMs() + waitMs > sinceMs + patienceMs)
        end(
          'the service says again and again that there were too many requests (429): another client spends from the same limit',
        )
      await deps.waitMs(waitMs)
      last = await sendOnce(request)
      if (isThrottled(last.answer)) continue
      const waitedMs = last.startedAtMs - endOf(first)
      throttles.push({ refused: first, waitedMs })
      if (waitedMs <= shortWaitMs) gapMs = widerGapMs(gapMs, first, exchanges)
      return last
    }
  }
}

/** Spaces requests as the second before the 429 shows that the service wants. @returns the gap in milliseconds */
function widerGapMs(gapMs: number, refused: Exchange, exchanges: readonly Exchange[]): number {
  const inTheSecond = exchanges.filter(
    ({ startedAtMs, answer }) =>
      startedAtMs < refused.startedAtMs && startedAtMs > refused.startedAtMs - 1_000 && !isThrottled(answer),
  )
  return Math.min(1_500, Math.max(gapMs * 1.5, 1_100 / Math.max(1, inTheSecond.length)))
}

const endOf = ({ startedAtMs, answer }: Exchange) => startedAtMs + answer.tookMs

/** Takes what is free, and goes without if nothing is. */
const takeNow = async ({ takeNow }: Slots) =>
  (await takeNow()) ?? { kind: 'slot' as const, mayLeave: () => true, async done() {} }

const isThrottled = (seen: Seen) => seen.kind === 'response' && seen.status === 429 && !isServiceCode(seen.code)

/** Whether a token was refused that had been taken before. A token that never was good is not worth renewing. */
function hasEnded({ accessToken, answer }: Exchange, exchanges: readonly Exchange[]): boolean {
  if (answer.kind === 'no-answer' || answer.status !== 401 || isServiceCode(answer.code)) return false
  return exchanges.some((each) => each.accessToken === accessToken && isLetIn(each.answer))
}

const isDown = ({ status, code }: Response) => status >= 400 && (code === 'E003' || (status === 503 && code === null))

const isPost = ({ method, accessToken }: Exchange) => method === 'POST' && accessToken !== null

/** A POST that was redirected, or answered with a success that is not JSON: whether it was taken cannot be read. */
const isElsewhere = (exchange: Exchange) =>
  isPost(exchange) &&
  exchange.answer.kind === 'response' &&
  exchange.answer.status < 400 &&
  exchange.answer.json === undefined

/** What is shown of an answer has no secret in it; what is judged, its JSON, is as it came. */
const withoutSecrets = (seen: Seen, secrets: readonly string[]): Seen =>
  seen.kind === 'no-answer' ? seen : { ...seen, text: hideSecrets(seen.text, secrets) }

const isLetIn = (seen: Seen) => seen.kind === 'response' && ![401, 403, 429].includes(seen.status)

function seenOf(answer: HttpAnswer): Seen {
  if (answer.kind === 'no-answer') return answer
  const json = answer.unreadable === null ? readJson(answer.text, []) : undefined
  return { ...answer, json, code: findErrorCode(answer.status, json, answer.text) }
}
