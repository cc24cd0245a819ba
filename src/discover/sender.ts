import type { DiscoverConfig } from '../config.ts'
import { endOfRequest, type RequestEnd } from '../model/service.ts'
import { readRetryAfterMs } from '../service/client.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from '../service/http.ts'
import { parseAndMaskJson } from '../service/readJson.ts'
import { findAnyErrorCode } from '../service/responses.ts'
import {
  accessTokenIn,
  type Exchange,
  endedAtMs,
  formatMsOrSeconds,
  isThrottled,
  type ParsedAnswer,
} from './exchange.ts'
import { QuestionsStopped, type Throttle } from './question.ts'
import { hideSecrets } from './savedExchanges.ts'

/** Counts requests, in the ledger's budget or in memory. */
export interface RequestClaimer {
  /** @param isBeyondLimit true to claim a request even if none is free */
  claim(isBeyondLimit: boolean): Promise<RequestClaim>
}

type RequestClaim =
  /** Call `end` after the answer. `mayLeave()` is false once it is too late for the request to leave. */
  | { kind: 'request'; mayLeave(): boolean; end(how: RequestEnd): Promise<void> }
  | { kind: 'none-free' }
  | { kind: 'paused'; reason: string; detail: string }

export interface SenderDeps {
  config: DiscoverConfig
  http: HttpClient
  claimer: RequestClaimer
  budget: number
  nowMs(): number
  waitMs(ms: number): Promise<void>
  signal: AbortSignal
}

/** After this many requests in a row without an answer, nothing more is sent. */
const unansweredMax = 3
/** If a request is let in this long after a 429, a limit with a shorter window caused the 429. */
export const shortThrottleWaitMs = 2_500
const claimAgainMs = 500

type Request = Omit<HttpRequest, 'mayLeave'> & {
  accessToken: string | null
  /** True if sent even if no request is free, and not repeated after a 429. */
  beyondLimit: boolean
}

/**
 * Sends requests, each counted by the budget. Repeats a request after a 429. Stops for good if the service is down or
 * silent.
 */
export class Sender {
  purpose = ''
  readonly exchanges: Exchange[] = []
  readonly throttles: Throttle[] = []
  requests = 0
  readonly #deps: SenderDeps
  readonly #secrets: Set<string>
  #stopped: string | null = null
  #unanswered = 0

  constructor(deps: SenderDeps) {
    this.#deps = deps
    this.#secrets = new Set([deps.config.service.clientSecret])
  }

  stop(why: string): void {
    this.#stopped ??= why
  }

  async send(request: Request): Promise<Exchange> {
    const exchange = await this.#sendUntilLetIn(request)
    const { answer } = exchange
    this.#unanswered = answer.kind === 'no-answer' ? this.#unanswered + 1 : 0
    if (answer.kind === 'no-answer') {
      if (this.#unanswered >= unansweredMax)
        this.#end(`${unansweredMax} requests in a row were not answered: ${answer.detail}`)
      return exchange
    }
    if (answer.status >= 400 && answer.code === 'E003')
      this.#end('the service says that it is down (E003): ask again when the service is up')
    return exchange
  }

  #end(why: string): never {
    this.stop(why)
    throw new QuestionsStopped(why)
  }

  async #sendUntilLetIn(request: Request): Promise<Exchange> {
    const first = await this.#sendOnce(request)
    if (request.beyondLimit || !isThrottled(first.answer)) return first
    const { config, nowMs, waitMs } = this.#deps
    const untilMs = nowMs() + 2 * config.rateLimit.windowMs + 5_000
    let last = first
    for (let backoffMs = 1_000; ; backoffMs *= 2) {
      const headers = last.answer.kind === 'response' ? last.answer.headers : {}
      const againMs = Math.max(readRetryAfterMs(headers, nowMs()) ?? 0, backoffMs) + 100
      if (nowMs() + againMs > untilMs)
        this.#end('the service answers 429 again and again: another client spends from the same limit')
      await waitMs(againMs)
      last = await this.#sendOnce(request)
      if (isThrottled(last.answer)) continue
      const waitedMs = last.startedAtMs - endedAtMs(first)
      this.throttles.push({ refused: first, waitedMs })
      return last
    }
  }

  async #sendOnce({ accessToken, beyondLimit, ...request }: Request): Promise<Exchange> {
    const { signal, budget, nowMs, http } = this.#deps
    for (;;) {
      if (signal.aborted) throw new QuestionsStopped('the command was interrupted')
      if (this.#stopped !== null) throw new QuestionsStopped(this.#stopped)
      if (this.requests >= budget) throw new QuestionsStopped(`the ${budget} requests of --budget were used up`)
      this.requests++ // before the request is sent, because several may be sent at once
      const claimed = await this.#claimRequest(beyondLimit)
      const startedAtMs = nowMs()
      const answer = await http.exchange({ ...request, mayLeave: claimed.mayLeave })
      await claimed.end(endOfRequest(answer))
      if (answer !== null) return this.#keep({ ...request, accessToken, startedAtMs, purpose: this.purpose, answer })
      this.requests-- // the deadline had passed before the request left
    }
  }

  async #claimRequest(beyondLimit: boolean): Promise<RequestClaim & { kind: 'request' }> {
    const { claimer, config, nowMs, waitMs, signal } = this.#deps
    const untilMs = nowMs() + 2 * config.rateLimit.windowMs
    for (;;) {
      const claimed = await claimer.claim(beyondLimit)
      if (claimed.kind === 'request') return claimed
      if (claimed.kind === 'none-free' && nowMs() < untilMs && !signal.aborted) {
        await waitMs(claimAgainMs)
        continue
      }
      this.requests--
      if (claimed.kind === 'paused')
        throw new QuestionsStopped(`sending is paused (${claimed.reason}): ${claimed.detail}. See \`outboxd status\``)
      throw new QuestionsStopped(
        `no request of the budget was free for ${formatMsOrSeconds(2 * config.rateLimit.windowMs)}: a daemon or another client uses them all`,
      )
    }
  }

  /** The text, which is shown, has no secrets. The JSON, which the questions judge, keeps them. */
  #keep({ answer, ...request }: Omit<Exchange, 'answer'> & { answer: HttpAnswer }): Exchange {
    const seen = seenOf(answer)
    const granted = accessTokenIn(seen)
    if (granted !== null) this.#secrets.add(granted)
    const shown = seen.kind === 'no-answer' ? seen : { ...seen, text: hideSecrets(seen.text, [...this.#secrets]) }
    const exchange = { ...request, answer: shown }
    this.exchanges.push(exchange)
    return exchange
  }
}

function seenOf(answer: HttpAnswer): ParsedAnswer {
  if (answer.kind === 'no-answer') return answer
  const json = answer.unreadable === null ? parseAndMaskJson(answer.text, []) : undefined
  return { ...answer, json, code: findAnyErrorCode(answer.status, json, answer.text) }
}

/** Follows docs/why/budget.md, without the database: a request counts until a window after its end. */
export class InMemoryRequests implements RequestClaimer {
  readonly #limit: { requests: number; windowMs: number }
  readonly #nowMs: () => number
  #counted: { overAtMs: number }[] = []

  constructor(limit: { requests: number; windowMs: number }, nowMs: () => number) {
    this.#limit = limit
    this.#nowMs = nowMs
  }

  async claim(isBeyondLimit: boolean): Promise<RequestClaim> {
    const { requests, windowMs } = this.#limit
    this.#counted = this.#counted.filter(({ overAtMs }) => overAtMs + windowMs > this.#nowMs())
    if (this.#counted.length >= requests && !isBeyondLimit) return { kind: 'none-free' }
    const request = { overAtMs: Number.POSITIVE_INFINITY }
    this.#counted.push(request)
    return {
      kind: 'request',
      mayLeave: () => true,
      end: async () => {
        request.overAtMs = this.#nowMs()
      },
    }
  }
}
