import { createHash } from 'node:crypto'
import type { Answer } from '../model.ts'

const shape = /^E\d{3}$/
const anywhere = /\bE\d{3}\b/

/**
 * The error code of an answer, wherever it is: `code`, `errorCode`, `error_code`, `error.code`, `errors[].code`, or the
 * `type` of a problem document (RFC 9457) that ends in one. A code of the interface's own shape wins over any other,
 * because frameworks like to put a `code` of theirs beside the service's.
 *
 * Running text counts only if there is no JSON and the status is 5xx, as a gateway's page may quote E003: a refusal
 * that mentions "article E003-17" speaks of the record, and would stop everybody.
 *
 * @param json undefined if the body is not JSON
 * @see docs/interface.md, 7.2: the body's shape and the mapping to HTTP statuses are not shown
 */
export function findErrorCode(status: number, json: unknown, text: string): string | null {
  const codes = codesIn(json, 0)
  const quoted = json === undefined && status >= 500 ? anywhere.exec(text)?.[0] : undefined
  return codes.find((code) => shape.test(code)) ?? quoted ?? codes[0] ?? null
}

/** Whether a code is one of the service's own (docs/interface.md, 7.2), and not its framework's or a gateway's. */
export const isServiceCode = (code: string | null): boolean => code !== null && shape.test(code)

const holders = ['code', 'errorCode', 'error_code', 'error', 'errors']

function codesIn(json: unknown, depth: number): string[] {
  // A list may hold bare codes, and bare words of any kind: only the interface's own shape is a code there.
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

/** A code is one word; `"error": "something went wrong"` is not one. */
function plausible(value: string): string[] {
  const code = value.trim()
  return /^[\w.:/-]{1,64}$/.test(code) ? [code] : []
}

/** RFC 9457, 3.1.1: the type of a problem is a URI, whose last part may be the code. */
function typeCode(type: unknown): string[] {
  const last = typeof type === 'string' ? (type.split(/[/#:]/).at(-1) ?? '') : ''
  return shape.test(last) ? [last] : []
}

/** What differs from answer to answer though they say the same: ids of requests, times, long numbers. */
const volatile =
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*|\b[0-9a-f]{12,}\b|\d{10,}/gi

/**
 * The status and body of a refusal in a few letters, by which a refusal is known again; null if the service itself
 * judges, under a code of its own (docs/interface.md, 7.2), or where it is no refusal.
 */
export function fingerprintOf(answer: Answer): string | null {
  if (answer.kind === 'no-answer' || answer.status < 400 || answer.status >= 500 || isServiceCode(answer.code))
    return null
  const body = answer.excerpt.replace(volatile, '#').replace(/\s+/g, ' ').trim()
  return createHash('sha256').update(`${answer.status} ${body}`).digest('base64url').slice(0, 22)
}
