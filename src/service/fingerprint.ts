import { createHash } from 'node:crypto'
import type { Answer } from '../model.ts'
import { isServiceCode } from './errorCode.ts'

/** What differs from answer to answer though they say the same: ids of requests, times, long numbers. */
const volatile =
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*|\b[0-9a-f]{12,}\b|\d{10,}/gi

/**
 * The status and body of a refusal in a few letters, by which a refusal is known again; null where the service itself
 * judges, under a code of its own (docs/interface.md, 7.2), or where it is no refusal.
 */
export function fingerprintOf(answer: Answer): string | null {
  if (answer.kind === 'no-answer' || answer.status < 400 || answer.status >= 500 || isServiceCode(answer.code))
    return null
  const body = answer.excerpt.replace(volatile, '#').replace(/\s+/g, ' ').trim()
  return createHash('sha256').update(`${answer.status} ${body}`).digest('base64url').slice(0, 22)
}
