import { randomUUID } from 'node:crypto'
import type { DiscoverConfig } from '../config.ts'
import { serviceResources } from '../resources.ts'
import { requestHeaders, splitBaseUrl } from '../service/client.ts'
import { isServiceErrorCode } from '../service/responses.ts'
import {
  type AnsweredExchange,
  accessTokenIn,
  describeAnswer,
  type Exchange,
  isSuccess,
  mayBeMaintenance,
  whyAnswerIsUnusable,
} from './exchange.ts'
import { tokenSample } from './judges/token.ts'
import { NoUsableAnswer, type QuestionOptions, type RequestHeaders, type Sample } from './question.ts'
import { Sender, type SenderDeps } from './sender.ts'

interface ApiCall {
  method: 'GET' | 'POST'
  path: string
  body?: string
  headers?: RequestHeaders
  /** Used instead of the shared token. After a 401, no new token is requested. */
  accessToken?: string
  beyondLimit?: boolean
}

const triesMax = 3
/** A proxy's page of maintenance is waited out for this long. */
const maintenanceMaxMs = 60_000
const maintenanceLookMs = 2_000
const betweenTriesMs = 300
const tokenRenewalsMax = 20

export class QuestionContext {
  readonly config: DiscoverConfig
  readonly given: QuestionOptions
  /** Part of our test records, so that people at the service can recognise them. */
  readonly run: string
  readonly sender: Sender
  readonly nowMs: () => number
  readonly waitMs: (ms: number) => Promise<void>
  readonly #samples = new Map<Sample<unknown>, Promise<unknown>>()
  #token: string | null = null
  #renewals = 0
  #records = 0

  constructor(deps: SenderDeps & { given: QuestionOptions; run: string }) {
    this.config = deps.config
    this.given = deps.given
    this.run = deps.run
    this.sender = new Sender(deps)
    this.nowMs = deps.nowMs
    this.waitMs = deps.waitMs
  }

  get exchanges(): readonly Exchange[] {
    return this.sender.exchanges
  }

  /** Returns four digits or more that no other record of this run has. */
  readonly nextNumber = (): string => String(this.#records++).padStart(4, '0')

  /** Sends a GET with the shared token. @throws {NoUsableAnswer} if the answer says nothing about the request */
  get(path: string): Promise<AnsweredExchange> {
    return this.#callUntilAnswered({ method: 'GET', path })
  }

  /** @param body JSON text @throws {NoUsableAnswer} as `get` does */
  post(path: string, body: string, headers: RequestHeaders = {}): Promise<AnsweredExchange> {
    return this.#callUntilAnswered({ method: 'POST', path, body, headers })
  }

  async #callUntilAnswered(request: ApiCall): Promise<AnsweredExchange> {
    for (let tries = 1; ; tries++) {
      const exchange = await this.call(request)
      const why = whyAnswerIsUnusable(exchange.answer, request.method)
      if (why === null) return exchange as AnsweredExchange
      const isTrouble =
        exchange.answer.kind === 'no-answer' || exchange.answer.status >= 500 || isSuccess(exchange.answer)
      if (!isTrouble || tries === triesMax) throw new NoUsableAnswer(why)
      await this.waitMs(betweenTriesMs)
    }
  }

  /** Returns any answer, even a 5xx. Waits while the whole service is in maintenance. */
  async call(request: ApiCall): Promise<Exchange> {
    const exchange = await this.#callWithLivingToken(request)
    if (request.beyondLimit || !mayBeMaintenance(exchange.answer) || !this.#hasWorked()) return exchange
    return (await this.#waitOutMaintenance()) ? this.#callWithLivingToken(request) : exchange
  }

  #hasWorked(): boolean {
    return this.exchanges.some(
      ({ accessToken, answer }) => accessToken !== null && answer.kind === 'response' && !mayBeMaintenance(answer),
    )
  }

  /**
   * Asks for an unknown transaction until that is answered without maintenance.
   * @returns false if only the request was answered so, and not the whole service
   */
  async #waitOutMaintenance(): Promise<boolean> {
    const untilMs = this.nowMs() + maintenanceMaxMs
    const look = () =>
      this.#callWithLivingToken({ method: 'GET', path: `${serviceResources.data.path}/${randomUUID()}` })
    let isLast = false
    for (let looks = 0; ; looks++) {
      const { answer } = await look()
      if (!mayBeMaintenance(answer)) return looks > 0
      if (isLast)
        this.sender.stop(`the service was in maintenance for ${maintenanceMaxMs / 1_000} s: ${describeAnswer(answer)}`)
      isLast = this.nowMs() + maintenanceLookMs > untilMs
      await this.waitMs(maintenanceLookMs)
    }
  }

  /** Renews the shared token if it has ended. */
  async #callWithLivingToken(request: ApiCall): Promise<Exchange> {
    if (request.accessToken !== undefined) return this.#callAs(request.accessToken, request)
    const exchange = await this.#callAs(await this.sharedToken(), request)
    if (!hasTokenEnded(exchange, this.exchanges) || this.#renewals >= tokenRenewalsMax) return exchange
    this.#renewals++
    const renewal = await this.requestToken()
    return accessTokenIn(renewal.answer) === null ? exchange : this.#callAs(await this.sharedToken(), request)
  }

  #callAs(accessToken: string, { method, path, body, headers, beyondLimit = false }: ApiCall): Promise<Exchange> {
    const { origin, prefix } = splitBaseUrl(this.config.service.baseUrl)
    const type = method === 'POST' ? { 'content-type': 'application/json' } : {}
    return this.sender.send({
      method,
      origin,
      path: prefix + path,
      headers: { ...requestHeaders, authorization: `Bearer ${accessToken}`, ...type, ...headers },
      body: body ?? null,
      accessToken,
      beyondLimit,
    })
  }

  /** Requests a token. If granted, it becomes the shared token. */
  async requestToken(): Promise<Exchange> {
    const { clientId: client_id, clientSecret: client_secret, authUrl } = this.config.service
    const { origin, prefix } = splitBaseUrl(authUrl)
    const exchange = await this.sender.send({
      method: 'POST',
      origin,
      path: `${prefix}/oauth/token`,
      headers: { ...requestHeaders, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret }).toString(),
      accessToken: null,
      beyondLimit: false,
    })
    this.#token = accessTokenIn(exchange.answer) ?? this.#token
    return exchange
  }

  async sharedToken(): Promise<string> {
    await this.sample(tokenSample)
    return this.#token ?? ''
  }

  /** Takes each sample once, and then returns the same result. */
  async sample<T>(sample: Sample<T>): Promise<T> {
    const before = this.sender.purpose
    this.sender.purpose = sample.name
    const taking = this.#samples.get(sample) ?? sample.take(this)
    this.#samples.set(sample, taking)
    try {
      return (await taking) as T
    } finally {
      this.sender.purpose = before
    }
  }
}

/** A token that never worked is not worth renewing. */
function hasTokenEnded({ accessToken, answer }: Exchange, exchanges: readonly Exchange[]): boolean {
  if (answer.kind === 'no-answer' || !isRefusalOfToken(answer.status) || isServiceErrorCode(answer.code)) return false
  return exchanges.some(
    (each) =>
      each.accessToken === accessToken &&
      each.answer.kind === 'response' &&
      ![403, 429].includes(each.answer.status) &&
      !isRefusalOfToken(each.answer.status),
  )
}

/** A redirect leads to a page to sign in. */
const isRefusalOfToken = (status: number): boolean => status === 401 || (status >= 300 && status < 400)
