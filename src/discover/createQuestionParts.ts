import { endpointAt, requestHeaders } from '../service/client.ts'
import { isServiceCode } from '../service/errorCode.ts'
import { type AnsweredExchange, accessTokenIn, type Exchange, whyNoAnswer } from './exchange.ts'
import { tokenSample } from './firstCall.ts'
import { type Call, type Given, NoAnswer, neededSamples, type QuestionParts, type Sample } from './question.ts'
import { Sender, type SenderDeps } from './sender.ts'

export interface PartsDeps extends SenderDeps {
  given: Given
  run: string
}

const triesMax = 3
const betweenTriesMs = 300
export const tokenRenewalsMax = 20

export interface OwnedQuestionParts {
  parts: QuestionParts
  sender: Sender
  isTaken(sample: Sample<unknown>): boolean
}

export function createQuestionParts(deps: PartsDeps): OwnedQuestionParts {
  const { config, given } = deps
  const sender = new Sender(deps)
  const taken = new Map<Sample<unknown>, Promise<unknown>>()
  const api = endpointAt(config.service.baseUrl)
  const issuer = endpointAt(config.service.authUrl)
  let token: string | null = null
  let renewals = 0
  let numbers = 0

  const parts: QuestionParts = {
    config,
    given,
    run: deps.run,
    get: (path) => answered({ method: 'GET', path }),
    post: (path, body, headers = {}) => answered({ method: 'POST', path, body, headers }),
    call,
    async askToken(clientSecret) {
      const form = { grant_type: 'client_credentials', client_id: config.service.clientId, client_secret: clientSecret }
      const exchange = await sender.send({
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
      const before = sender.asking
      const taking = taken.get(sample) ?? take(sample)
      taken.set(sample, taking)
      try {
        return (await taking) as T
      } finally {
        sender.asking = before
      }
    },
    stop: (why) => sender.stop(why),
    exchanges: () => sender.exchanges,
    throttles: () => sender.throttles,
    nextNumber: () => numbers++,
    nowMs: deps.nowMs,
    waitMs: deps.waitMs,
  }
  return { parts, sender, isTaken: (sample) => taken.has(sample) }

  async function call({ method, path, body, headers = {}, accessToken, beyondLimit = false }: Call) {
    const type = method === 'POST' ? { 'content-type': 'application/json' } : {}
    const callAs = (accessToken: string) =>
      sender.send({
        method,
        origin: api.origin,
        path: api.prefix + path,
        headers: { ...requestHeaders, authorization: `Bearer ${accessToken}`, ...type, ...headers },
        body: body ?? null,
        accessToken,
        beyondLimit,
      })
    if (accessToken !== undefined) return callAs(accessToken)
    const exchange = await callAs(await parts.token())
    if (!hasEnded(exchange, sender.exchanges) || renewals >= tokenRenewalsMax) return exchange
    renewals++
    const renewal = await parts.askToken(config.service.clientSecret)
    return accessTokenIn(renewal.answer) === null ? exchange : callAs(await parts.token())
  }

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

  async function take<T>(sample: Sample<T>): Promise<T> {
    sender.asking = sample.name
    for (const each of neededSamples(sample, given)) await parts.sample(each)
    sender.asking = sample.name
    return sample.take(parts)
  }
}

/** True if a token was refused that had been accepted before. A token that never worked is not worth renewing. */
function hasEnded({ accessToken, answer }: Exchange, exchanges: readonly Exchange[]): boolean {
  if (answer.kind === 'no-answer' || answer.status !== 401 || isServiceCode(answer.code)) return false
  return exchanges.some(
    (each) =>
      each.accessToken === accessToken &&
      each.answer.kind === 'response' &&
      ![401, 403, 429].includes(each.answer.status),
  )
}
