import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export interface Viewer {
  who: string
  csrf: string
  session: string
  canChange: boolean
  canSignOut: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    viewer: Viewer
  }
  interface FastifyContextConfig {
    needsNoViewer?: true
    /** --read-only allows the request. */
    changesNothing?: true
    /** Each open page polls this address, so its errors are not logged. */
    isPolled?: true
  }
}

/** Each form token is for one viewer, and valid until the console ends. */
export function createFormTokenMaker(): (whom: string) => string {
  const key = randomBytes(32)
  return (whom) => createHmac('sha256', key).update(whom).digest('base64url')
}

export function isSameToken(given: unknown, wanted: string): boolean {
  const [a, b] = [Buffer.from(typeof given === 'string' ? given : ''), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
