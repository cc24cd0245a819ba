import { isSuccessStatus, type NoAnswerCause } from '../model/service.ts'
import { readRateRemaining } from '../service/client.ts'
import { isServiceErrorCode, readAcceptance, tokenResponseSchema } from '../service/responses.ts'

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

export function whyAnswerIsUnusable(seen: ParsedAnswer): string | null {
  if (seen.kind === 'no-answer') return describeAnswer(seen)
  if (isServiceErrorCode(seen.code) || !(seen.status >= 500 || [401, 407, 408, 429].includes(seen.status))) return null
  return `${seen.status} without a code of the service says nothing about the request: ${describeAnswer(seen)}`
}

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
