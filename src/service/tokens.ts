import type { Clock } from '../clock.ts'
import { type Answer, type Breach, isSuccessStatus, type TokenVerdict } from '../model/service.ts'
import type { Token, TokenAnswer } from './client.ts'
import { readPauseFromTokenAnswer } from './readAnswer.ts'

/** A service may refuse a token for one method only. */
type Method = 'GET' | 'POST'

export type TokenFetchReason = 'missing' | 'renewal'

/** Where tokens come from. */
export interface TokenSource {
  /** Makes a token request within the budget. @returns `not-now` if the request did not leave */
  fetch(why: TokenFetchReason): Promise<TokenAnswer | 'not-now'>
  /** True if a token and a request never fit into one window. */
  isOneAtATime(): boolean
  /** Reads client id and secret again. @returns true if they changed */
  renewSecret(): boolean
}

interface TokenCacheOptions {
  clock: Clock
  /** A token is renewed this long before its end, but not before half of its lifetime. */
  refreshMs: number
  breached(kind: Breach): void
}

const assumedLifetimeMs = 300_000
/** Bounds a caller's wait, because /livez reports a round that hangs for 120 s. */
const readyMaxMs = 10_000
/** The wait after a failed renewal, so that a failing issuer is not asked with each request. */
const renewalPauseMs = 10_000

/** A token may end this much earlier, because its end is in whole seconds (RFC 7519, 2). */
const roundingMs = 1_000
const outlivedMax = 5
/**
 * A service may refuse a token in its first moments, because its clock is behind the issuer's (`nbf`: RFC 7519, 4.1.5). A
 * token that is refused before this age is kept, and used again after each of these waits.
 */
const youngMaxMs = 10_000
const youngWaitsMs = [1_000, 2_000, 5_000]
/** Replaced tokens are kept, because an answer may come several short-lived tokens later. */
const rememberedMax = 10
const refusedRecordsMax = 1_000

interface Held {
  accessToken: string
  ageMs: () => number
  lifetimeMs: number
  expiresAtMs: number
  renewAgeMs: number
  isUsed: boolean
  isAccepted: boolean
  replacesRefused: boolean
  isOutlived: boolean
  /** Refusals so far of the token that was too young. */
  youngRefusals: number
  /** The age before which the token is not used again. */
  restsUntilAgeMs: number
  refusedFor: Set<Method>
  /** Methods for which the service refused the former token, and has not yet accepted this one. */
  unprovenFor: Set<Method>
}

/** What a 401 means for the token that got it. */
export type TokenRefusals = Pick<TokenCache, 'isRefusedForAge' | 'isRefusedAgain'>

/** Holds the access token that all requests of this process share (docs/reference/interface.md, 5). */
export class TokenCache {
  readonly #source: TokenSource
  readonly #options: TokenCacheOptions
  #held: Held | null = null
  #rejected: Held | null = null
  #fetching: Promise<TokenVerdict> | null = null
  /** Stays until a caller has its verdict, because that may be a pause. */
  #missing: Promise<TokenVerdict> | null = null
  /** The newest first. */
  #remembered: Held[] = []
  /** By the id of a record that got 401: the first token that was refused. */
  readonly #refusedWith = new Map<string, string>()
  /** Tokens in a row that were refused because they had expired. */
  #outlived = 0

  constructor(source: TokenSource, options: TokenCacheOptions) {
    this.#source = source
    this.#options = options
  }

  /**
   * Returns the current token, or fetches one. Concurrent callers share one fetch. During a renewal returns the old
   * token, and after a failed renewal, until that token expires. Returns `not-now` if the issuer does not answer in
   * 10 s, or while a token that was refused too young rests.
   */
  async ready(): Promise<TokenVerdict> {
    const held = this.#held
    if (held === null || this.#isOver(held)) return this.#waitForMissing()
    this.#missing = null
    if (isResting(held)) return { kind: 'not-now' }
    if (held.ageMs() >= held.renewAgeMs) this.#shareFetch('renewal').catch(() => {})
    return verdict(held)
  }

  used(accessToken: string, answer: Answer): void {
    if (this.#held?.accessToken === accessToken) {
      this.#held.isUsed = true
      this.#held.isAccepted ||= answer.kind === 'response' && answer.status !== 401
    }
    if (answer.kind === 'response' && answer.status !== 401) this.#outlived = 0
  }

  reject(accessToken: string): void {
    if (this.#held?.accessToken !== accessToken || isResting(this.#held)) return
    this.#rejected = this.#held
    this.#held = null
  }

  /**
   * True if a 401 may only mean that the token expired, or is not valid yet. After five expired tokens in a row, and after
   * three waits for a young one, a 401 means a refusal.
   */
  isRefusedForAge(accessToken: string, answer: Answer): boolean {
    if (answer.kind === 'no-answer' || answer.status !== 401) return false
    const token = this.#find(accessToken)
    if (token === undefined) return false
    if (token.ageMs() + answer.tookMs + roundingMs < token.lifetimeMs) return isRefusedForYouth(token, answer.tookMs)
    if (!token.isOutlived) this.#outlived += 1
    token.isOutlived = true
    return this.#outlived <= outlivedMax
  }

  /**
   * True if a token that was fetched after a 401 gets 401, too, so that a further token will not help. Either the token
   * was never accepted, or this record got 401 with two tokens of this process. Another instance's token does not
   * count, because it may have been revoked earlier.
   */
  isRefusedAgain(accessToken: string, answer: Answer, method: Method, submissionId: string): boolean {
    const token = this.#find(accessToken)
    if (token === undefined || answer.kind === 'no-answer' || this.isRefusedForAge(accessToken, answer)) return false
    if (answer.status !== 401) {
      token.unprovenFor.delete(method)
      this.#refusedWith.delete(submissionId)
      return false
    }
    token.refusedFor.add(method)
    const former = this.#refusedWith.get(submissionId) ?? accessToken
    this.#refusedWith.set(submissionId, former)
    if (this.#refusedWith.size > refusedRecordsMax) this.#refusedWith.delete([...this.#refusedWith.keys()][0] ?? '')
    return token.unprovenFor.has(method) || (former !== accessToken && this.#find(former) !== undefined)
  }

  #find(accessToken: string): Held | undefined {
    return this.#remembered.find((each) => each.accessToken === accessToken)
  }

  expiresAtMs(): number | null {
    return this.#held?.expiresAtMs ?? null
  }

  /**
   * True if the token has expired. With a limit of 1, an expired token is used once, because each token would expire
   * before the window has room for a request.
   */
  #isOver({ ageMs, lifetimeMs, isUsed }: Held): boolean {
    return ageMs() >= lifetimeMs && (isUsed || !this.#source.isOneAtATime())
  }

  async #waitForMissing(): Promise<TokenVerdict> {
    this.#missing ??= this.#shareFetch('missing')
    const late = Promise.withResolvers<null>()
    const timer = setTimeout(late.resolve, readyMaxMs, null)
    let isLate = false
    try {
      const verdict = await Promise.race([this.#missing, late.promise])
      isLate = verdict === null
      return verdict ?? { kind: 'not-now' }
    } finally {
      clearTimeout(timer)
      if (!isLate) this.#missing = null
    }
  }

  #shareFetch(need: TokenFetchReason): Promise<TokenVerdict> {
    this.#fetching ??= this.#fetch(need).finally(() => {
      this.#fetching = null
    })
    return this.#fetching
  }

  async #fetch(need: TokenFetchReason): Promise<TokenVerdict> {
    const { clock } = this.#options
    // The token's age counts from before the request, so that a slow answer does not make the token look younger.
    const sent = { ageMs: clock.stopwatch(), atMs: clock.nowMs() }
    let fetched = await this.#source.fetch(need)
    if (isRefused(fetched) && this.#source.renewSecret()) fetched = await this.#source.fetch(need)
    if (fetched === 'not-now') return { kind: 'not-now' }
    if (fetched.token === null) return this.#refused(fetched)
    const held = this.#hold(fetched.token, sent)
    this.#held = held
    this.#rejected = null
    this.#remembered = [held, ...this.#remembered].slice(0, rememberedMax)
    return verdict(held)
  }

  #refused({ answer }: TokenAnswer): TokenVerdict {
    if (answer.kind === 'response' && isSuccessStatus(answer.status)) this.#options.breached('unreadable_answer')
    if (this.#held !== null) this.#held.renewAgeMs = this.#held.ageMs() + renewalPauseMs
    return { kind: 'pause', pause: readPauseFromTokenAnswer(answer) }
  }

  #hold(token: Token, sent: { ageMs: () => number; atMs: number }): Held {
    const { breached, refreshMs } = this.#options
    if (token.lifetimeMs === null) breached('unreadable_answer')
    const lifetimeMs = token.lifetimeMs ?? assumedLifetimeMs
    return {
      accessToken: token.accessToken,
      ageMs: sent.ageMs,
      lifetimeMs,
      expiresAtMs: sent.atMs + lifetimeMs,
      renewAgeMs: Math.max(lifetimeMs - refreshMs, lifetimeMs / 2),
      isUsed: false,
      isAccepted: false,
      replacesRefused: this.#rejected !== null,
      isOutlived: false,
      youngRefusals: 0,
      restsUntilAgeMs: 0,
      refusedFor: new Set(),
      unprovenFor: new Set(this.#rejected?.refusedFor),
    }
  }
}

const isResting = ({ ageMs, restsUntilAgeMs }: Held): boolean => ageMs() < restsUntilAgeMs

/** Begins the next rest, unless the request left before the last one ended. */
function isRefusedForYouth(token: Held, tookMs: number): boolean {
  const ageMs = token.ageMs()
  if (token.youngRefusals > 0 && ageMs - tookMs < token.restsUntilAgeMs) return true
  const isYoung = token.youngRefusals > 0 || ageMs < youngMaxMs
  const waitMs = youngWaitsMs[token.youngRefusals]
  if (!isYoung || token.isAccepted || token.replacesRefused || waitMs === undefined) return false
  token.youngRefusals += 1
  token.restsUntilAgeMs = ageMs + waitMs
  return true
}

const isRefused = (fetched: TokenAnswer | 'not-now'): boolean =>
  fetched !== 'not-now' && fetched.token === null && readPauseFromTokenAnswer(fetched.answer).reason === 'unauthorized'

function verdict({ accessToken }: Held): TokenVerdict {
  return { kind: 'token', accessToken }
}
