import { randomUUID } from 'node:crypto'
import { boundText, textCharsMax } from '../boundText.ts'
import type { Clock } from '../clock.ts'
import type { Config, Credentials } from '../config.ts'
import { type Answer, isSuccessStatus, type ServiceRequest } from '../model/service.ts'
import { routeOf } from '../resources.ts'
import { createHttpClient, type HttpAnswer, type HttpClient, type HttpRequest } from './http.ts'
import { parseAnswerJson } from './readJson.ts'
import { compileSecrets, redactAndBoundText } from './redactSecrets.ts'
import { findAnyErrorCode, parseUsableId, tokenResponseSchema } from './responses.ts'

export interface Token {
  accessToken: string
  lifetimeMs: number | null
}

/** `answer` never holds the token. */
export interface TokenAnswer {
  answer: Answer
  token: Token | null
}

export interface ServiceClient {
  /**
   * @param mayLeave called just before the first byte leaves, even after a long connect
   * @returns null if the request did not leave
   */
  send(request: ServiceRequest, accessToken: string, mayLeave: () => boolean): Promise<Answer | null>
  requestUnknownPath(accessToken: string, mayLeave: () => boolean): Promise<Answer | null>
  requestToken(mayLeave: () => boolean): Promise<TokenAnswer | null>
  close(): Promise<void>
}

interface ServiceClientDeps {
  service: Config['service']
  credentials: () => Credentials
  maxInFlight: number
  clock: Clock
  /**
   * Called at each connection with the earliest expiry, in epoch ms, of the certificates that API and issuer showed
   * last.
   */
  onCertificate?: (expiresAtMs: number) => void
  /** Called with each answer of the service or the issuer; null for a request that did not leave. */
  onAnswer?: (answer: HttpAnswer | null) => void
}

/**
 * Sends requests to the service (docs/reference/interface.md, 4). Never throws because of the service or the network.
 */
export function createServiceClient(deps: ServiceClientDeps): ServiceClient {
  const { service, credentials, maxInFlight, clock, onCertificate, onAnswer = () => {} } = deps
  const ends = new Map<string, number>()
  const http = createHttpClient({
    clock,
    timeoutMs: service.requestTimeoutMs,
    connections: maxInFlight + 1,
    answerMaxBytes: service.answerMaxBytes,
    settings: credentials,
    onCertificate(host, expiresAtMs) {
      ends.set(host, expiresAtMs)
      onCertificate?.(Math.min(...ends.values()))
    },
  })
  const exchange: HttpClient['exchange'] = async (request) => {
    const answer = await http.exchange(request)
    onAnswer(answer)
    return answer
  }
  const api = splitBaseUrl(service.baseUrl)
  const issuer = splitBaseUrl(service.authUrl)

  async function callApi(request: ApiRequest, accessToken: string, mayLeave: () => boolean): Promise<Answer | null> {
    const headers = { ...requestHeaders, authorization: `Bearer ${accessToken}`, ...request.headers }
    const path = api.prefix + request.path
    const { clientSecret } = credentials()
    const answer = await exchange({ ...request, origin: api.origin, path, headers, mayLeave })
    return answer && answerFrom(answer, [accessToken, clientSecret], clock.nowMs(), api.origin + path)
  }

  return {
    send: (request, accessToken, mayLeave) => callApi(apiRequest(request, service), accessToken, mayLeave),

    requestUnknownPath: (accessToken, mayLeave) =>
      callApi({ method: 'GET', path: `/api/v1/${randomUUID()}`, headers: {}, body: null }, accessToken, mayLeave),

    async requestToken(mayLeave) {
      const { clientId, clientSecret } = credentials()
      const answer = await exchange({ ...tokenRequest(issuer, clientId, clientSecret), mayLeave })
      if (answer === null) return null
      if (answer.kind === 'response' && isSuccessStatus(answer.status))
        return readToken(answer, service.expiresInUnitMs, clock.nowMs())
      return { answer: answerFrom(answer, [clientSecret], clock.nowMs()), token: null }
    },

    close: http.close,
  }
}

interface BaseUrl {
  origin: string
  prefix: string
}

/** Keeps the base path apart, because `URL` would resolve an id such as `..`, and cut an id at a `?`. */
export function splitBaseUrl(address: string): BaseUrl {
  const url = new URL(address)
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}

// Asks only for `identity`, because a compressed answer could unpack to gigabytes.
export const requestHeaders = { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'outboxd' }

type ApiRequest = Omit<HttpRequest, 'origin' | 'mayLeave'>

type KeySettings = Pick<Config['service'], 'idempotencyHeader' | 'idempotencyKeyForm'>

function apiRequest(
  { endpoint, body, idempotencyKey, traceparent }: ServiceRequest,
  settings: KeySettings,
): ApiRequest {
  const { method, path } = routeOf(endpoint)
  const trace = traceparent === undefined ? {} : { traceparent }
  if (method === 'GET')
    return { method, path: `${path}/${encodeURIComponent(body.toWellFormed())}`, headers: trace, body: null }
  const key = idempotencyKey === null ? {} : idempotencyKeyHeader(idempotencyKey, settings)
  return { method, path, headers: { 'content-type': 'application/json', ...key, ...trace }, body }
}

/**
 * Puts the key in double quotes by default (RFC 8941, 3.3.3, and draft-ietf-httpapi-idempotency-key-header). Some
 * services take only the bare UUID.
 */
export function idempotencyKeyHeader(
  key: string,
  { idempotencyHeader, idempotencyKeyForm }: KeySettings,
): Record<string, string> {
  return { [idempotencyHeader.toLowerCase()]: idempotencyKeyForm === 'bare' ? key : `"${key}"` }
}

function tokenRequest(issuer: BaseUrl, clientId: string, clientSecret: string): Omit<HttpRequest, 'mayLeave'> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret }
  return {
    method: 'POST',
    origin: issuer.origin,
    path: `${issuer.prefix}/oauth/token`,
    headers: { ...requestHeaders, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  }
}

/** @param address null to ignore Location */
function answerFrom(
  answer: HttpAnswer,
  secrets: readonly string[],
  nowMs: number,
  address: string | null = null,
): Answer {
  if (answer.kind === 'no-answer') return answer
  const { status, headers, text, unreadable, tookMs } = answer
  const json = unreadable === null ? parseAnswerJson(text, secrets, isSuccessStatus(status)) : undefined
  const hidden = compileSecrets(secrets)
  const shown = [unreadable && `(${unreadable}) `, redirectTo(status, headers), text].filter(Boolean).join('')
  return {
    kind: 'response',
    status,
    json,
    // Redacts before cutting, because a cut could leave half a token.
    excerpt: boundText(redactAndBoundText(shown, hidden), textCharsMax.excerpt),
    code: findAnyErrorCode(status, json, text),
    locationId: address === null ? null : readLocationId(headers.location, address, hidden),
    retryAfterMs: readRetryAfterMs(headers, nowMs),
    rateRemaining: readRateRemaining(headers),
    dateMs: dateOf(headers.date),
    tookMs,
  }
}

/** Replaces the body, which may hold the token, by its flaw. */
function readToken(answer: HttpAnswer & { kind: 'response' }, unitMs: number, nowMs: number): TokenAnswer {
  const withText = (text: string) => answerFrom({ ...answer, text }, [], nowMs)
  if (answer.unreadable !== null) return { answer: withText(''), token: null }
  const { data, error } = tokenResponseSchema.safeParse(parseAnswerJson(answer.text, [], true))
  if (data === undefined) return { answer: withText(error.issues[0]?.message ?? ''), token: null }
  const { access_token: accessToken, expires_in: expiresIn } = data
  return { answer: withText(''), token: { accessToken, lifetimeMs: lifetimeMs(expiresIn, unitMs) } }
}

/** Returns null above ten years, because the unit must then be wrong. */
function lifetimeMs(expiresIn: number, unitMs: number): number | null {
  const ms = expiresIn * unitMs
  return ms > 0 && ms < 10 * 366 * 86_400_000 ? ms : null
}

/** Drops the target's query, which may hold secrets. */
function redirectTo(status: number, headers: Record<string, string>): string | null {
  const location = headers.location
  if (status < 300 || status > 399 || location === undefined) return null
  return `(redirect to ${location.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//')}) `
}

/**
 * Returns the last part of a Location at the service, if it may be an id: it has a digit and is not in the requested
 * address. The daemon never follows a Location.
 */
export function readLocationId(location: string | undefined, address: string, secrets: RegExp | null): string | null {
  const url = location === undefined ? null : URL.parse(location, address)
  const asked = new URL(address)
  if (url === null || url.origin !== asked.origin) return null
  const last = url.pathname.split('/').findLast((part) => part !== '') ?? ''
  if (!/\d/.test(last) || asked.pathname.split('/').includes(last)) return null
  try {
    return parseUsableId(redactAndBoundText(decodeURIComponent(last), secrets))
  } catch {
    return null // a stray % sign
  }
}

function dateOf(header: string | undefined): number | null {
  const ms = header === undefined ? Number.NaN : Date.parse(header)
  return Number.isNaN(ms) ? null : ms
}

/** A proxy may merge two headers. */
export function readRateRemaining(headers: Readonly<Record<string, string>>): number | null {
  const numbers = (headers['x-ratelimit-remaining'] ?? '').split(',')
  return numbers.every((each) => /^\s*\d{1,9}\s*$/.test(each)) ? Math.min(...numbers.map(Number)) : null
}

/**
 * A date in Retry-After is by the service's clock, so the header Date is subtracted.
 * @see RFC 9110, 10.2.3
 */
export function readRetryAfterMs(headers: Readonly<Record<string, string>>, nowMs: number): number | null {
  const text = headers['retry-after']?.trim() ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER)
  // Requires a day's name, because Date.parse also takes `-5` and `1e3`.
  const untilMs = /^[A-Z][a-z]{2,8}, ?\d/.test(text) ? Date.parse(text) : Number.NaN
  const sinceMs = Date.parse(headers.date ?? '')
  return Number.isNaN(untilMs) ? null : Math.max(0, untilMs - (Number.isNaN(sinceMs) ? nowMs : sinceMs))
}
