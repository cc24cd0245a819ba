import { createHash } from 'node:crypto'
import type { Answer } from '../model.ts'

const shape = /^E\d{3}$/
const anywhere = /\bE\d{3}\b/

/**
 * Finds the error code: `code`, `errorCode`, `error_code`, `error.code`, `errors[].code`, or the end of a problem's
 * `type` (RFC 9457). A code of the interface's own shape wins over a framework's.
 *
 * Running text counts only without JSON and with 5xx, because a gateway's page may quote E003. A refusal that mentions
 * "article E003-17" is about the record, and must not stop all sending.
 *
 * @param json undefined if the body is not JSON
 * @see docs/reference/interface.md, 7.2
 */
export function findErrorCode(status: number, json: unknown, text: string): string | null {
  const codes = codesIn(json, 0)
  const quoted = json === undefined && status >= 500 ? anywhere.exec(text)?.[0] : undefined
  return codes.find((code) => shape.test(code)) ?? quoted ?? codes[0] ?? null
}

/** True for the service's own codes (docs/reference/interface.md, 7.2), not a framework's or gateway's. */
export const isServiceCode = (code: string | null): boolean => code !== null && shape.test(code)

const holders = ['code', 'errorCode', 'error_code', 'error', 'errors']

function codesIn(json: unknown, depth: number): string[] {
  // A list may hold any words, so only the interface's shape counts.
  if (typeof json === 'string') return shape.test(json) ? [json] : []
  if (depth > 2 || typeof json !== 'object' || json === null) return []
  if (Array.isArray(json)) return json.slice(0, 100).flatMap((one) => codesIn(one, depth + 1))
  const fields = json as Record<string, unknown>
  const held = holders.flatMap((holder) => {
    const value = fields[holder]
    return typeof value === 'string' ? plausible(value) : codesIn(value, depth + 1)
  })
  return [...held, ...typeCode(fields.type)]
}

/** `"error": "something went wrong"` is not a code. */
function plausible(value: string): string[] {
  const code = value.trim()
  return /^[\w.:/-]{1,64}$/.test(code) ? [code] : []
}

function typeCode(type: unknown): string[] {
  const last = typeof type === 'string' ? (type.split(/[/#:]/).at(-1) ?? '') : ''
  return shape.test(last) ? [last] : []
}

/** Ids, times and long numbers differ between equal answers. */
const volatile =
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*|\b[0-9a-f]{12,}\b|\d{10,}/gi

/**
 * Hashes a refusal's status and body, so that equal refusals are recognised. Null if it is not a refusal, or has the
 * service's own code.
 */
export function answerFingerprint(answer: Answer): string | null {
  if (answer.kind === 'no-answer' || answer.status < 400 || answer.status >= 500 || isServiceCode(answer.code))
    return null
  const body = answer.excerpt.replace(volatile, '#').replace(/\s+/g, ' ').trim()
  return createHash('sha256').update(`${answer.status} ${body}`).digest('base64url').slice(0, 22)
}
