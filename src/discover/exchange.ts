import { isSuccessStatus, type NoAnswerCause } from '../model/service.ts'
import { namesIdInLocation } from '../model/statuses.ts'
import type { Resource } from '../resources.ts'
import { readLocationId, readRateRemaining } from '../service/client.ts'
import { isServiceErrorCode, readAcceptance, readIdInSubmitAnswer, tokenResponseSchema } from '../service/responses.ts'

/** Holds secrets until `maskExchanges` has hidden them. */
export interface Exchange {
  purpose: string
  method: 'GET' | 'POST'
  origin: string
  path: string
  headers: Readonly<Record<string, string>>
  body: string | null
  /** Null for a token request. */
  accessToken: string | null
  startedAtMs: number
  answer: ParsedAnswer
}

export type ParsedAnswer =
  | {
      kind: 'response'
      status: number
      /** Names in lower case. A repeated header has only its first value. */
      headers: Readonly<Record<string, string>>
      text: string
      /** Why `text` is not the whole body; null if `text` is whole. */
      unreadable: string | null
      /** Undefined if the body is not JSON. */
      json: unknown
      /** The service's error code, as the daemon reads it. */
      code: string | null
      tookMs: number
    }
  | { kind: 'no-answer'; sent: boolean; cause: NoAnswerCause; detail: string; tookMs: number }

export type Response = ParsedAnswer & { kind: 'response' }

export type AnsweredExchange = Exchange & { answer: Response }

export const isSuccess = (seen: ParsedAnswer): boolean => seen.kind === 'response' && isSuccessStatus(seen.status)

/** True if the service refused the request itself: not by a redirect, nor for the limit, token or address. */
export const isRefusalOfRequestItself = (seen: ParsedAnswer): boolean =>
  seen.kind === 'response' &&
  ((seen.status >= 400 && seen.status < 500 && ![401, 403, 407, 408, 429].includes(seen.status)) ||
    (isSuccess(seen) && readAcceptance(seen.json, seen.code) === 'no'))

export const isThrottled = (seen: ParsedAnswer): boolean =>
  seen.kind === 'response' && seen.status === 429 && !isServiceErrorCode(seen.code)

/** Says why an answer shows nothing about the request; null if the answer may be judged. */
export function whyAnswerIsUnusable(seen: ParsedAnswer, method: Exchange['method'] = 'GET'): string | null {
  if (seen.kind === 'no-answer') return describeAnswer(seen)
  if (method === 'POST' && isFromElsewhere(seen))
    return `something other than the service answered a POST: ${describeAnswer(seen)}`
  if (isServiceErrorCode(seen.code) || !(seen.status >= 500 || [401, 407, 408, 429].includes(seen.status))) return null
  return `${seen.status} without a code of the service says nothing about the request: ${describeAnswer(seen)}`
}

/** True for a redirect, or a success with a text that is not JSON. A success without a body is the service's own. */
const isFromElsewhere = ({ status, json, text }: Response): boolean =>
  (status >= 300 && status < 400) || (status < 300 && json === undefined && text.trim() !== '')

/** True for a page, or a 503 without the service's code: a proxy may answer every request so. */
export const mayBeMaintenance = (seen: ParsedAnswer): boolean =>
  seen.kind === 'response' &&
  !isServiceErrorCode(seen.code) &&
  (seen.status === 503 ||
    (/^\s*<(!doctype|html|h1|body|head|title)/i.test(seen.text) && (isSuccess(seen) || seen.status >= 500)))

export const jsonOf = (seen: ParsedAnswer): unknown => (seen.kind === 'response' ? seen.json : undefined)

export function fieldOf(json: unknown, name: string): unknown {
  return isObject(json) ? json[name] : undefined
}

export const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === 'object' && json !== null && !Array.isArray(json) && !JSON.isRawJSON(json)

export function rateLimitRemainingOf(seen: ParsedAnswer): number | null {
  return seen.kind === 'response' ? readRateRemaining(seen.headers) : null
}

export function transactionStatusIn({ answer }: Exchange): string | null {
  const status = isSuccess(answer) ? fieldOf(jsonOf(answer), 'status') : undefined
  return typeof status === 'string' ? status : null
}

/** The id in the answer to a POST, or in its Location, as the daemon reads it. */
export function submittedIdIn(resource: Resource, { origin, path, answer }: Exchange): string | null {
  if (answer.kind !== 'response' || !isSuccess(answer)) return null
  const id = readIdInSubmitAnswer(resource, answer.json)
  return id ?? (namesIdInLocation(answer.status) ? readLocationId(answer.headers.location, origin + path, null) : null)
}

export function accessTokenIn(seen: ParsedAnswer): string | null {
  const read = isSuccess(seen) ? tokenResponseSchema.safeParse(jsonOf(seen)) : null
  return read?.success ? read.data.access_token : null
}

export function statusAndCodeText(seen: ParsedAnswer): string {
  if (seen.kind === 'no-answer') return 'no answer'
  return isServiceErrorCode(seen.code) ? `${seen.status} ${seen.code}` : String(seen.status)
}

export function describeAnswer(seen: ParsedAnswer): string {
  if (seen.kind === 'no-answer') return `no answer: ${seen.detail}`
  const text = seen.text.replace(/\s+/g, ' ').trim()
  const shown = text.length > 160 ? `${text.slice(0, 159).toWellFormed()}…` : text
  return `${seen.status}${seen.unreadable === null ? '' : ` (${seen.unreadable})`} ${shown || 'without a body'}`
}

export const endedAtMs = ({ startedAtMs, answer }: Exchange): number => startedAtMs + answer.tookMs

export const formatMsOrSeconds = (durationMs: number): string =>
  durationMs < 1_000 ? `${Math.round(durationMs)} ms` : `${Math.round(durationMs / 100) / 10} s`
