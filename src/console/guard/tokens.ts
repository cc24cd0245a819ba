import { createHmac, timingSafeEqual } from 'node:crypto'

/** The token that a session's forms carry. It is of no use to another session, nor to another start of the console. */
export function csrfToken(key: Buffer, sessionId: string): string {
  return createHmac('sha256', key).update(`csrf ${sessionId}`).digest('base64url')
}

/** Compares without telling by its time how much was right. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
