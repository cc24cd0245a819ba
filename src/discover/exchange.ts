import { isSuccess as isSuccessStatus } from '../model.ts'
import { isServiceCode } from '../service/errorCode.ts'
import { judgeTaken, tokenResponse } from '../service/responses.ts'

/** A request as it left, and what came back. Secrets stand in it: it is masked before it is shown (savedExchanges.ts). */
export interface Exchange {
  /** The question or sample for which it was made. */
  of: string
  method: 'GET' | 'POST'
  origin: string
  path: string
  headers: Readonly<Record<string, string>>
  body: string | null
  /** The token that it carries; null for a request to the issuer. */
  accessToken: string | null
  startedAtMs: number
  answer: Seen
}

/** An answer with all that a question may look at. */
export type Seen =
  | {
      kind: 'response'
      status: number
      /** Names in lower case; of a repeated header, the first. */
      headers: Readonly<Record<string, string>>
      text: string
      /** Why `text` is not the whole body; null if it is. */
      unreadable: string | null
      /** Undefined if the body is not JSON. */
      json: unknown
      /** The error code that the daemon finds in it. */
      code: string | null
      tookMs: number
    }
  | { kind: 'no-answer'; sent: boolean; cause: 'timeout' | 'network' | 'suspended'; detail: string; tookMs: number }

export type Response = Seen & { kind: 'response' }

/** An exchange whose answer came. */
export type AnsweredExchange = Exchange & { answer: Response }

export const isSuccess = (seen: Seen): boolean => seen.kind === 'response' && isSuccessStatus(seen.status)

/** The request itself was judged and refused: not throttled, not for its token, not redirected. */
export const isRefusal = (seen: Seen): boolean =>
  seen.kind === 'response' &&
  ((seen.status >= 400 && seen.status < 500 && !notOfTheRequest.has(seen.status)) ||
    (isSuccess(seen) && judgeTaken(seen.json, seen.code) === 'no'))

/** Why an answer tells nothing of what was asked: it is of the service's trouble, the limit or the token. Null if it is of the request. */
export function whyNoAnswer(seen: Seen): string | null {
  if (seen.kind === 'no-answer') return lineOf(seen)
  if (isServiceCode(seen.code) || !(seen.status >= 500 || [401, 407, 408, 429].includes(seen.status))) return null
  return `${seen.status} without a code of the service tells nothing of what was asked: ${lineOf(seen)}`
}

const notOfTheRequest: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])

/** The body; undefined if it is not JSON. */
export const jsonOf = (seen: Seen): unknown => (seen.kind === 'response' ? seen.json : undefined)

/** An object's field; undefined if there is none. */
export function fieldOf(json: unknown, name: string): unknown {
  return isObject(json) ? json[name] : undefined
}

export const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === 'object' && json !== null && !Array.isArray(json) && !JSON.isRawJSON(json)

/** X-RateLimit-Remaining; null if there is none that can be read. */
export function remainingOf(seen: Seen): number | null {
  const header = seen.kind === 'response' ? seen.headers['x-ratelimit-remaining']?.trim() : undefined
  return header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : null
}

/** The status that an answer says, as it is written; null if it says none. */
export function statusIn({ answer }: Exchange): string | null {
  const status = isSuccess(answer) ? fieldOf(jsonOf(answer), 'status') : undefined
  return typeof status === 'string' ? status : null
}

/** The token of an answer, as the daemon would read it; null if it could not. */
export function accessTokenIn(seen: Seen): string | null {
  const read = isSuccess(seen) ? tokenResponse.safeParse(jsonOf(seen)) : null
  return read?.success ? read.data.access_token : null
}

/** Its status, with the service's code if it has one: `400 E001`. */
export function nameOf(seen: Seen): string {
  if (seen.kind === 'no-answer') return 'no answer'
  return seen.code !== null && isServiceCode(seen.code) ? `${seen.status} ${seen.code}` : String(seen.status)
}

/** The answer in a line, for `why`. */
export function lineOf(seen: Seen): string {
  if (seen.kind === 'no-answer') return `no answer: ${seen.detail}`
  const text = seen.text.replace(/\s+/g, ' ').trim()
  const shown = text.length > 160 ? `${text.slice(0, 159).toWellFormed()}…` : text
  return `${seen.status}${seen.unreadable === null ? '' : ` (${seen.unreadable})`} ${shown || 'without a body'}`
}

/** When its answer had come. */
export const endedAtMs = ({ startedAtMs, answer }: Exchange): number => startedAtMs + answer.tookMs
