import type { Clock } from '../clock.ts'
import { type Answer, type Breach, isSuccess, type TokenVerdict, wasSuspended } from '../model.ts'
import type { Token, TokenAnswer } from './client.ts'
import { decideToken } from './readAnswer.ts'

/** The access token that all requests of this process share (docs/reference/interface.md, 5). */
export interface Tokens {
  /**
   * Returns the token in force, or fetches one. Concurrent callers share one fetch. A token due for renewal is still
   * given while its successor is fetched, and as long as it lasts if that fails.
   */
  ready(): Promise<TokenVerdict>
  used(accessToken: string, answer: Answer): void
  /**
   * Whether a 401 may come only of the token's age, and so says nothing about the next token. After five such tokens
   * in a row it does.
   */
  isRefusedForAge(accessToken: string, answer: Answer): boolean
  /**
   * Whether a 401 came to a token that was fetched after a refusal and has not been let in since: then another token
   * will not help.
   */
  isRefusedAgain(accessToken: string, answer: Answer, method: Method): boolean
  /** Drops the token that the service refused, unless another has taken its place. */
  reject(accessToken: string): void
  expiresAtMs(): number | null
}

/** A service may refuse a token for the one and not for the other. */
type Method = 'GET' | 'POST'

export type TokenFetchReason = 'missing' | 'renewal'

interface TokensDeps {
  clock: Clock
  /** How long before its end a token is renewed; half of a shorter lifetime. */
  refreshMs: number
  requestToken(mayLeave: () => boolean): Promise<TokenAnswer | null>
  spendSlot(
    request: (mayLeave: () => boolean) => Promise<TokenAnswer | null>,
    why: TokenFetchReason,
  ): Promise<TokenAnswer | 'no-slot'>
  /** Whether a token and a request never find slots within one window. */
  isOneAtATime(): boolean
  /** Reads the refused id and secret again. @returns whether they changed */
  renewSecret(): boolean
  breached(kind: Breach): void
}

/** For a token that does not say how long it lasts. */
const assumedLifetimeMs = 300_000
/** After a failed renewal, so that an issuer in trouble is not asked once per request. */
const renewalPauseMs = 10_000

/** The service counts a token's end in whole seconds (RFC 7519, 2). */
const roundingMs = 1_000
const outlivedMax = 5
/** A request may come back after its token was replaced, more than once if tokens are short. */
const rememberedMax = 10

interface Held {
  accessToken: string
  ageMs: () => number
  lifetimeMs: number
  expiresAtMs: number
  renewAgeMs: number
  isUsed: boolean
  isOutlived: boolean
  /** What it, and what the token before, was refused for, as long as it has not been let in. */
  refusedFor: Set<Method>
  unprovenFor: Set<Method>
}

export function createTokens(deps: TokensDeps): Tokens {
  let held: Held | null = null
  let rejected: Held | null = null
  let remembered: Held[] = []
  let outlived = 0
  let fetching: Promise<TokenVerdict> | null = null

  async function fetch(need: TokenFetchReason): Promise<TokenVerdict> {
    // Its life counts from before the request, so that a slow answer does not make it look younger.
    const sent = { ageMs: deps.clock.stopwatch(), atMs: deps.clock.nowMs() }
    let fetched = await deps.spendSlot(deps.requestToken, need)
    if (isRefused(fetched) && deps.renewSecret()) fetched = await deps.spendSlot(deps.requestToken, need)
    if (fetched === 'no-slot' || wasSuspended(fetched.answer)) return { kind: 'no-slot' } // asked again at the next look
    if (fetched.token === null) return refused(fetched)
    held = hold(fetched.token, sent)
    rejected = null
    remembered = [held, ...remembered].slice(0, rememberedMax)
    return verdict(held)
  }

  function refused({ answer }: TokenAnswer): TokenVerdict {
    if (answer.kind === 'response' && isSuccess(answer.status)) deps.breached('unreadable_answer')
    if (held !== null) held.renewAgeMs = held.ageMs() + renewalPauseMs
    return { kind: 'pause', pause: decideToken(answer) }
  }

  function hold(token: Token, sent: { ageMs: () => number; atMs: number }): Held {
    if (token.lifetimeMs === null) deps.breached('unreadable_answer')
    const lifetimeMs = token.lifetimeMs ?? assumedLifetimeMs
    return {
      accessToken: token.accessToken,
      ageMs: sent.ageMs,
      lifetimeMs,
      expiresAtMs: sent.atMs + lifetimeMs,
      renewAgeMs: Math.max(lifetimeMs - deps.refreshMs, lifetimeMs / 2),
      isUsed: false,
      isOutlived: false,
      refusedFor: new Set(),
      unprovenFor: new Set(rejected?.refusedFor),
    }
  }

  function shareFetch(need: TokenFetchReason): Promise<TokenVerdict> {
    fetching ??= fetch(need).finally(() => {
      fetching = null
    })
    return fetching
  }

  /**
   * With a limit of 1, a token that lasts no longer than a window is over before its request may leave: so is the
   * next.
   */
  function isOver({ ageMs, lifetimeMs, isUsed }: Held): boolean {
    return ageMs() >= lifetimeMs && (isUsed || !deps.isOneAtATime())
  }

  function isRefusedForAge(accessToken: string, answer: Answer): boolean {
    if (answer.kind === 'no-answer' || answer.status !== 401) return false
    const token = remembered.find((each) => each.accessToken === accessToken)
    if (token === undefined || token.ageMs() + answer.tookMs + roundingMs < token.lifetimeMs) return false
    if (!token.isOutlived) outlived += 1
    token.isOutlived = true
    return outlived <= outlivedMax
  }

  return {
    async ready() {
      if (held === null || isOver(held)) return shareFetch('missing')
      // A failed renewal shows when the token runs out.
      if (held.ageMs() >= held.renewAgeMs) shareFetch('renewal').catch(() => {})
      return verdict(held)
    },

    used(accessToken, answer) {
      if (held?.accessToken === accessToken) held.isUsed = true
      if (answer.kind === 'response' && answer.status !== 401) outlived = 0
    },

    isRefusedForAge,

    isRefusedAgain(accessToken, answer, method) {
      const token = remembered.find((each) => each.accessToken === accessToken)
      if (token === undefined || answer.kind === 'no-answer' || isRefusedForAge(accessToken, answer)) return false
      if (answer.status !== 401) {
        token.unprovenFor.delete(method)
        return false
      }
      token.refusedFor.add(method)
      return token.unprovenFor.has(method)
    },

    reject(accessToken) {
      if (held?.accessToken !== accessToken) return
      rejected = held
      held = null
    },

    expiresAtMs: () => held?.expiresAtMs ?? null,
  }
}

const isRefused = (fetched: TokenAnswer | 'no-slot'): boolean =>
  fetched !== 'no-slot' && fetched.token === null && decideToken(fetched.answer).reason === 'unauthorized'

function verdict({ accessToken }: Held): TokenVerdict {
  return { kind: 'token', accessToken }
}
