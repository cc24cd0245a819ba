import { isSuccess as isSuccessStatus } from '../model.ts'
import { isServiceCode } from '../service/errorCode.ts'

/** A request as it left, and what came back. Secrets stand in it: it is masked before it is shown (masking.ts). */
export interface Exchange {
  /** The question or sample for which it was made. */
  of: string
  method: 'GET' | 'POST'
  origin: string
  path: string
  headers: Readonly<Record<string, string>>
  body: string | null
  /** The token that it carries; null where none of those that the issuer gave. */
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
      /** Why `text` is not the whole body; null where it is. */
      unreadable: string | null
      /** Undefined where the body is no JSON. */
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

/** The request itself was judged and refused: nobody was throttled, sent away or told to come back. */
export const isRefusal = (seen: Seen): boolean =>
  seen.kind === 'response' && seen.status >= 400 && seen.status < 500 && !notOfTheRequest.has(seen.status)

/**
 * Why an answer tells nothing of what was asked: it is of the service's trouble, the limit or the token; null where it is of the
 * request. With a code of the service it is. Pure.
 */
export function whyNoAnswer(seen: Seen): string | null {
  if (seen.kind === 'no-answer') return lineOf(seen)
  if (isServiceCode(seen.code) || !(seen.status >= 500 || [401, 407, 408, 429].includes(seen.status))) return null
  return `${seen.status} without a code of the service tells nothing of what was asked: ${lineOf(seen)}`
}

/** The body; undefined where it is no JSON. */
export const jsonOf = (seen: Seen): unknown => (seen.kind === 'response' ? seen.json : undefined)

const notOfTheRequest: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])

/** An object's field; undefined where there is none. */
export function fieldOf(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null && !Array.isArray(json) && !JSON.isRawJSON(json)
    ? (json as Record<string, unknown>)[name]
    : undefined
}

/** X-RateLimit-Remaining; null where there is none that can be read. */
export function remainingOf(seen: Seen): number | null {
  const header = seen.kind === 'response' ? seen.headers['x-ratelimit-remaining']?.trim() : undefined
  return header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : null
}

/** Its status, with the service's code where it has one: `400 E001`. */
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

/** By when it left at the latest, and came back. */
export const endedAtMs = ({ startedAtMs, answer }: Exchange): number => startedAtMs + answer.tookMs
