import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Makes the token of the forms that are shown to somebody: of no use to others, nor after another start of the console. */
export function createFormTokens(): (whom: string) => string {
  const key = randomBytes(32)
  return (whom) => createHmac('sha256', key).update(whom).digest('base64url')
}

/** Compares without telling by its time how much was right. */
export function isSameToken(given: unknown, wanted: string): boolean {
  const [a, b] = [Buffer.from(typeof given === 'string' ? given : ''), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
