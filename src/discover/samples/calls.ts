import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { tokenResponse } from '../../service/responses.ts'
import type { ConnectionSeen } from '../connection.ts'
import {
  type Exchange,
  fieldOf,
  isRefusal,
  isSuccess,
  jsonOf,
  lineOf,
  nameOf,
  remainingOf,
  type Seen,
} from '../exchange.ts'
import { type Finding, likely, sure, unknown } from '../finding.ts'
import { CannotAsk, type Parts, type Sample, Stopped } from '../question.ts'

export interface TokenTaken {
  accessToken: string
  exchange: Exchange
}

/** The token with which all else is asked (docs/interface.md, 4.1). */
export const tokenSample: Sample<TokenTaken> = {
  name: 'a token',
  requestsMax: 1,
  recordsMax: 0,
  samples: [],
  async take(parts) {
    const exchange = await parts.askToken(parts.config.service.clientSecret)
    const accessToken = accessTokenIn(exchange.answer)
    if (accessToken === null) throw new Stopped(`there is no token: ${explainNoToken(exchange.answer)}`)
    return { accessToken, exchange }
  },
}

/** The token of an answer, as the daemon would read it; null where it could not. */
export function accessTokenIn(seen: Seen): string | null {
  const read = isSuccess(seen) ? tokenResponse.safeParse(jsonOf(seen)) : null
  return read?.success ? read.data.access_token : null
}

/** What to look at where the issuer gave none. */
export function explainNoToken(seen: Seen): string {
  if (seen.kind === 'no-answer') return seen.detail
  const said = `the issuer answered ${lineOf(seen)}`
  if (isSuccess(seen))
    return seen.json === undefined
      ? `${said}, which is no JSON: look at SERVICE_AUTH_URL`
      : 'the issuer answered without an access_token that a Bearer header can carry'
  if (seen.status >= 300 && seen.status < 400) return `${said}; redirects are not followed: look at SERVICE_AUTH_URL`
  if (seen.status === 404 || seen.status === 405) return `${said}: look at SERVICE_AUTH_URL`
  return seen.status < 500
    ? `${said}: look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list`
    : said
}

/** What answers at the address of the API. */
export interface FirstCall {
  first: Exchange
  /** A question for a path at which nothing is served, where the first was answered with a success. */
  beside: Exchange | null
}

/**
 * A question for a transaction that does not exist, with a good token, which changes nothing. Where something else than the
 * service answers, or does not let us in, nothing more is sent.
 */
export const firstExchangeSample: Sample<FirstCall> = {
  name: 'a question for an unknown transaction',
  requestsMax: 2,
  recordsMax: 0,
  samples: [],
  async take(parts) {
    const first = await parts.getWhatever(`${resources.data.path}/${randomUUID()}`)
    const beside = isSuccess(first.answer) ? await parts.getWhatever(`/api/v1/${randomUUID()}`) : null
    const { stop } = judgeAddress(first.answer, beside?.answer ?? null)
    if (stop !== null) parts.stop(stop)
    return { first, beside }
  },
}

/** The same, where the service answered and more can be asked: nothing is judged by what something else answers. */
export const firstCallSample: Sample<FirstCall> = {
  name: 'a first call that is let in',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstExchangeSample],
  async take(parts) {
    const call = await parts.sample(firstExchangeSample)
    const { stop } = judgeAddress(call.first.answer, call.beside?.answer ?? null)
    if (stop !== null) throw new Stopped(stop)
    return call
  },
}

/** Calls around a second token in quick succession: what of it the limit counts. */
export interface Tokens {
  /** A POST that is refused, as its body is empty. */
  post: Exchange
  /** A question for a transaction. */
  poll: Exchange
  /** A POST of an order that is refused. */
  order: Exchange
  renewal: Exchange
  /** A refused POST with the second token; null where the issuer gave none. */
  second: Exchange | null
  /** One with the first again. */
  first: Exchange
}

export const tokensSample: Sample<Tokens> = {
  name: 'calls around a second token, with POSTs of an empty body',
  requestsMax: 6,
  recordsMax: 0,
  samples: [tokenSample, firstCallSample],
  async take(parts) {
    const empty = (accessToken?: string) =>
      parts.postWhatever(resources.data.path, '{}', accessToken === undefined ? {} : { accessToken })
    const post = await empty()
    const poll = await parts.getWhatever(`${resources.data.path}/${randomUUID()}`)
    const order = await parts.postWhatever(resources.orders.path, '{}')
    const renewal = await parts.askToken(parts.config.service.clientSecret)
    const token = accessTokenIn(renewal.answer)
    return { post, poll, order, renewal, second: token === null ? null : await empty(token), first: await empty() }
  },
}

const looksMax = 12
/** Longer than this nobody waits. */
const heldMaxMs = 75 * 60_000
const units = [1, 1_000, 60_000]

/** A token of its own, tried until it is refused: at the end that it would have in each unit, and before. */
export const heldTokenSample: Sample<null> = {
  name: 'a token held to its end',
  requestsMax: 1 + looksMax,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const grant = await parts.askToken(parts.config.service.clientSecret)
    const token = accessTokenIn(grant.answer)
    if (token === null) throw new CannotAsk('the issuer gave no token to hold')
    const expiresIn = Number(fieldOf(jsonOf(grant.answer), 'expires_in'))
    const bySelf = jwtLifetimeSeconds(token)
    const endsMs = (bySelf === null ? units.map((unitMs) => expiresIn * unitMs) : [bySelf * 1_000]).filter(
      (ms) => ms >= 1_000 && ms <= heldMaxMs,
    )
    if (endsMs.length === 0)
      throw new CannotAsk(`a token lasts longer than ${heldMaxMs / 60_000} minutes by what it says`)
    for (const dueMs of looksBefore(endsMs)) {
      await parts.waitMs(Math.max(0, grant.startedAtMs + dueMs - parts.nowMs()))
      const { answer } = await parts.getWhatever(`${resources.data.path}/${randomUUID()}`, { accessToken: token })
      if (answer.kind === 'response' && answer.status === 401) break
    }
    return null
  },
}

/** Before each end and right after it, and on the way to the last, so that an early end is seen to be one. Pure. */
export function looksBefore(endsMs: readonly number[]): number[] {
  const last = Math.max(...endsMs)
  const around = endsMs.flatMap((ms) => [ms * 0.9, ms + 2_000])
  const onTheWay = [0.15, 0.3, 0.5, 0.7].map((share) => share * last)
  return [...around, ...onTheWay].toSorted((a, b) => a - b).slice(0, looksMax)
}

/** Refused POSTs with pauses between, until what was used at first has left the window as it is configured. */
export const windowSample: Sample<readonly Exchange[]> = {
  name: 'POSTs of an empty body over a window',
  requestsMax: 8,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const { first } = await parts.sample(firstCallSample)
    if (remainingOf(first.answer) === null) return []
    const { windowMs } = parts.config.rateLimit
    const startMs = parts.nowMs()
    const looks: Exchange[] = []
    // Halves of a window, so that between two looks one half has left it and another has not.
    for (const share of [0, 0.02, 0.5, 0.52, 1.25, 1.27, 1.75, 1.77]) {
      await parts.waitMs(Math.max(0, startMs + share * windowMs - parts.nowMs()))
      looks.push(await emptyPost(parts))
    }
    return looks
  },
}

/** @param beyondLimit whether it is sent though the budget has no slot, on purpose */
export const emptyPost = (parts: Parts, beyondLimit = false): Promise<Exchange> =>
  parts.postWhatever(resources.data.path, '{}', { beyondLimit })

const burstMax = 130
/** Beyond what the service says remains. */
const beyondMax = 5

/** POSTs of an empty body until one is refused because of the limit. */
export const limitSample: Sample<readonly Exchange[]> = {
  name: 'POSTs of an empty body until the limit is reached',
  requestsMax: burstMax,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const burst: Exchange[] = []
    const isOver = () => statusOf(burst.at(-1)) === 429
    let remaining = remainingOf((await parts.sample(firstCallSample)).first.answer) ?? parts.config.rateLimit.requests
    let beyond = 0
    while (burst.length < burstMax && beyond < beyondMax && !isOver()) {
      beyond += remaining <= 0 ? 1 : 0
      const next = await emptyPost(parts, true)
      burst.push(next)
      remaining = remainingOf(next.answer) ?? remaining - 1
    }
    return burst
  },
}

const statusOf = (exchange: Exchange | undefined) =>
  exchange?.answer.kind === 'response' ? exchange.answer.status : null

/** How long an idle connection is waited for with --slow. */
const idleMaxMs = 130_000

/** A connection looked at by hand; with --slow until the service ends it. */
export const connectionSample: Sample<ConnectionSeen> = {
  name: 'a connection of its own',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    return parts.connect({ idleMaxMs: parts.given.slow ? idleMaxMs : 0 })
  },
}

/** RFC 7519, 4.1: exp less iat, in seconds; null where the token is none, or has not both. */
export function jwtLifetimeSeconds(accessToken: string): number | null {
  const [, claims, signature] = accessToken.split('.')
  if (claims === undefined || signature === undefined) return null
  try {
    const { exp, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
    return typeof exp === 'number' && typeof iat === 'number' && exp > iat ? exp - iat : null
  } catch {
    return null
  }
}

/**
 * Says, too, why nothing more should be asked of whatever answers so; null where more can be. Pure.
 *
 * @param beside what a path at which nothing is served is answered, where it was asked
 */
export function judgeAddress(seen: Seen, beside: Seen | null): { finding: Finding; stop: string | null } {
  const assumed = 'let in; else 401, as the interface says, or 403'
  const line = lineOf(seen)
  if (seen.kind === 'no-answer')
    return { finding: unknown(line, { assumed }), stop: `the first call with a good token was not answered: ${line}` }
  const refused = (found: string, why: string, cannot: string) => ({
    finding: likely(found, why, { assumed, differs: true, cannot }),
    stop: `the first call with a good token ${why}`,
  })
  const sentAway = (why: string) => ({
    finding: unknown(`the first call ${why}: whether it would be let in there, nobody has asked`, { assumed }),
    stop: `the first call with a good token ${why}`,
  })
  if (seen.status === 401 || seen.status === 403)
    return refused(
      `refused with ${seen.status}`,
      `was answered ${line}`,
      'every record waits (pause unauthorized) until the operator of the service lets this address in, or gives the client the permission',
    )
  if (seen.status >= 300 && seen.status < 400)
    return sentAway(`was answered ${seen.status} to ${(seen.headers.location ?? '(nowhere)').replace(/[?#].*$/s, '')}`)
  if (isSuccess(seen) && !(beside !== null && isRefusal(beside)))
    return refused(
      'something else',
      `was answered ${line}, though there is no such transaction, and a path at which nothing is served the same: that is not the service`,
      'nothing of the service answers at SERVICE_BASE_URL',
    )
  if (isSuccess(seen) || isRefusal(seen))
    return {
      finding: sure(
        'let in',
        `a good token was answered ${nameOf(seen)}; how another address is answered cannot be asked from here`,
        { assumed },
      ),
      stop: null,
    }
  return { finding: unknown(line, { assumed }), stop: null }
}
