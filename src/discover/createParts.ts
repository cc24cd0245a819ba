import type { DiscoverConfig } from '../config.ts'
import { accepted, endpointAt, retryAfterMs } from '../service/client.ts'
import { findErrorCode, isServiceCode } from '../service/errorCode.ts'
import type { Http, HttpAnswer, HttpRequest } from '../service/http.ts'
import { readJson } from '../service/readJson.ts'
import type { ConnectionSeen, LookOptions } from './connection.ts'
import {
  type AnsweredExchange,
  type Exchange,
  isSuccess,
  lineOf,
  type Response,
  type Seen,
  whyNoAnswer,
} from './exchange.ts'
import type { Finding } from './finding.ts'
import {
  CannotAsk,
  type Given,
  NoAnswer,
  type Parts,
  type Question,
  type RequestOptions,
  type Sample,
  Stopped,
} from './question.ts'
import { accessTokenIn, tokenSample } from './samples/calls.ts'
import { hideSecrets } from './savedExchanges.ts'
import type { Slots } from './slots.ts'

export interface PartsDeps {
  config: DiscoverConfig
  given: Given
  run: string
  http: Http
  /** Looks at a connection by hand, with one request. */
  connect(options: LookOptions): Promise<ConnectionSeen | null>
  slots: Slots
  /** The most requests in all. */
  budget: number
  nowMs(): number
  waitMs(ms: number): Promise<void>
  signal: AbortSignal
}

/** So often in a row nobody answers, or says 503; then nobody will. */
const unansweredMax = 3
/** So many tokens may end meanwhile. */
export const renewalsMax = 3
/** Longer than this nobody is waited for who says when to come back. */
const comeBackMaxMs = 90_000

/** The parts, and how their owner has a question asked with them. */
export interface OwnedParts {
  parts: Parts
  /** Makes the exchanges that the question rests on, those that were not made before, and has it ask the rest. */
  ask(question: Question): Promise<Finding>
  /** How many requests have been made. */
  requests(): number
  /** How many more may be. */
  left(): number
  isTaken(sample: Sample<unknown>): boolean
}

/** Asks questions of the service. Their requests go out one after the other, and none beyond the budget. */
export function createParts(deps: PartsDeps): OwnedParts {
  const { config, given, run } = deps
  const sending = createSending(deps)
  const { send, exchanges } = sending
  const taken = new Map<Sample<unknown>, Promise<unknown>>()
  const api = endpointAt(config.service.baseUrl)
  const issuer = endpointAt(config.service.authUrl)
  /** In place of the first token, which has ended. */
  let token: string | null = null
  let renewals = 0

  const parts: Parts = {
    config,
    given,
    run,
    get: async (path, options = {}) => answered(await parts.getWhatever(path, options), options),
    post: async (path, body, options = {}) => answered(await parts.postWhatever(path, body, options), options),
    getWhatever: async (path, options = {}) => call('GET', path, null, options),
    postWhatever: async (path, body, options = {}) =>
      call('POST', path, body, { ...options, headers: { 'content-type': 'application/json', ...options.headers } }),
    askToken(clientSecret) {
      const form = { grant_type: 'client_credentials', client_id: config.service.clientId, client_secret: clientSecret }
      return send({
        method: 'POST',
        origin: issuer.origin,
        path: `${issuer.prefix}/oauth/token`,
        headers: { ...accepted, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(form).toString(),
        accessToken: null,
        slots: deps.slots,
      })
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
    async connect(options) {
      const { accessToken } = await parts.sample(tokenSample)
      return sending.pay((mayLeave) => deps.connect({ accessToken, mayLeave, ...options }), deps.slots)
    },
    stop: sending.stop,
    exchanges: () => exchanges,
    nowMs: deps.nowMs,
    waitMs: deps.waitMs,
  }

  /** Calls with the token that all questions share, and with another once that one has ended. */
  async function call(
    method: 'GET' | 'POST',
    path: string,
    body: string | null,
    { headers: more = {}, accessToken: given, beyondLimit = false }: RequestOptions,
  ): Promise<Exchange> {
    const slots = beyondLimit ? withoutWaiting(deps.slots) : deps.slots
    const as = (accessToken: string) => {
      const headers = { ...accepted, authorization: `Bearer ${accessToken}`, ...more }
      return send({ method, origin: api.origin, path: api.prefix + path, headers, body, accessToken, slots })
    }
    if (given !== undefined) return as(given)
    const first = (await parts.sample(tokenSample)).accessToken
    const exchange = await as(token ?? first)
    if (!hasEnded(exchange, exchanges)) return exchange
    if (renewals >= renewalsMax)
      throw new CannotAsk(
        `a token that was good was refused (401) after ${renewalsMax} others: nobody can tell whether it had ended`,
      )
    token = accessTokenIn((await parts.askToken(config.service.clientSecret)).answer)
    renewals++
    return token === null ? exchange : as(token)
  }

  async function make<T>(sample: Sample<T>): Promise<T> {
    sending.asking = sample.name
    await takeSamples(sample.samples)
    return sample.take(parts)
  }

  async function takeSamples(samples: readonly Sample<unknown>[]): Promise<void> {
    for (const sample of samples) await parts.sample(sample)
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

/** What has been sent, and the way to send more. */
interface Sending {
  /** The question or sample that is asked just now. */
  asking: string
  readonly exchanges: readonly Exchange[]
  /** Sends a request. Waits once if the service says 429, and stops if the service is down or gone. */
  send(request: PaidRequest): Promise<Exchange>
  /** Makes a request, if one may be made: pays for it, and counts it. */
  pay<T>(make: (mayLeave: () => boolean) => Promise<T | null>, slots: Pick<Slots, 'take'>): Promise<T>
  /** Nothing more is sent, for this reason. */
  stop(why: string): void
  requests(): number
}

function createSending(deps: PartsDeps): Sending {
  const { config, given } = deps
  const exchanges: Exchange[] = []
  const secrets = new Set([config.service.clientSecret])
  let unanswered = 0
  let requests = 0
  let stopped: string | null = null
  const sending: Sending = {
    asking: '',
    exchanges,
    send,
    pay,
    stop(why) {
      stopped ??= why
    },
    requests: () => requests,
  }
  return sending

  async function pay<T>(make: (mayLeave: () => boolean) => Promise<T | null>, slots: Pick<Slots, 'take'>): Promise<T> {
    for (;;) {
      if (deps.signal.aborted) throw new Stopped('it was interrupted')
      if (stopped !== null) throw new Stopped(stopped)
      if (requests >= deps.budget) throw new Stopped(`the ${deps.budget} requests of --budget were used up`)
      const slot = await slots.take()
      if (slot.kind === 'none') throw new Stopped(slot.why)
      const made = await make(slot.mayLeave).finally(slot.done)
      if (made === null) continue
      requests++
      return made
    }
  }

  async function sendOnce({ accessToken, slots, ...request }: PaidRequest): Promise<Exchange> {
    let startedAtMs = deps.nowMs()
    const answer = await pay((mayLeave) => {
      startedAtMs = deps.nowMs()
      return deps.http.exchange({ ...request, mayLeave })
    }, slots)
    const { method, origin, path, headers, body } = request
    const seen = seenOf(answer)
    const granted = accessTokenIn(seen)
    if (granted !== null) secrets.add(granted)
    const shown = withoutSecrets(seen, [...secrets])
    const of = sending.asking
    const exchange = { of, method, origin, path, headers, body, accessToken, startedAtMs, answer: shown }
    exchanges.push(exchange)
    return exchange
  }

  function end(why: string): never {
    sending.stop(why)
    throw new Stopped(why)
  }

  async function send(request: PaidRequest): Promise<Exchange> {
    const exchange = await sendOnce(request)
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
    if (answer.status !== 429 || isServiceCode(answer.code) || given.rate) return exchange
    await deps.waitMs(
      Math.min(retryAfterMs(answer.headers['retry-after'], deps.nowMs()) ?? config.rateLimit.windowMs, comeBackMaxMs),
    )
    const again = await sendOnce(request)
    if (again.answer.kind === 'response' && again.answer.status === 429)
      end('the service says again that there were too many requests (429): somebody else spends from the same limit')
    return again
  }
}

/** Whether a token was refused that had been taken before. A token that never was good is not worth renewing. */
function hasEnded({ accessToken, answer }: Exchange, exchanges: readonly Exchange[]): boolean {
  if (answer.kind === 'no-answer' || answer.status !== 401 || isServiceCode(answer.code)) return false
  return exchanges.some((each) => each.accessToken === accessToken && isLetIn(each.answer))
}

/** A request with the token that it carries, and who pays. */
type PaidRequest = Omit<HttpRequest, 'mayLeave'> & { accessToken: string | null; slots: Pick<Slots, 'take'> }

/** Takes what is free, and does without where nothing is. */
const withoutWaiting = ({ takeNow }: Slots): Pick<Slots, 'take'> => ({
  take: async () => (await takeNow()) ?? { kind: 'slot', mayLeave: () => true, async done() {} },
})

/** @throws {NoAnswer} where it tells nothing of what was asked; a 401 to a token that was chosen does */
function answered(exchange: Exchange, { accessToken }: RequestOptions): AnsweredExchange {
  if (!cameBack(exchange)) throw new NoAnswer(lineOf(exchange.answer))
  const isOfToken = accessToken !== undefined && exchange.answer.status === 401
  const why = isOfToken ? null : whyNoAnswer(exchange.answer)
  if (why !== null) throw new NoAnswer(why)
  return exchange
}

const cameBack = (exchange: Exchange): exchange is AnsweredExchange => exchange.answer.kind === 'response'

const isDown = ({ status, code }: Response) => status >= 400 && (code === 'E003' || (status === 503 && code === null))

const isPost = ({ method, accessToken }: Exchange) => method === 'POST' && accessToken !== null

/** A POST that was sent away, or answered with a success that is no JSON: whether it was taken, nobody can read. */
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
