import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** The person who asks for a page: `request.viewer` of every route. */
export interface Viewer {
  /** `operator NAME`, for the event log. */
  who: string
  /** The token that a form of theirs must carry. */
  csrf: string
  /** Their session, or the proxy's name for them; '' if nobody is asked to sign in. */
  session: string
  /** Whether they may change something; false with --read-only. */
  canChange: boolean
  /** Whether they signed in with a password. */
  canSignOut: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    viewer: Viewer
  }
  interface FastifyContextConfig {
    /** Served without signing in: the stylesheet, the page to sign in. */
    needsNoViewer?: true
    /** A form that changes nothing in the ledger: it is taken with --read-only, too. */
    changesNothing?: true
    /** Stays open, so it has bounds of its own (liveRoutes.ts). */
    isStream?: true
  }
}

/** Makes tokens for forms: each is of use to one viewer, until the console ends. */
export function createFormTokens(): (whom: string) => string {
  const key = randomBytes(32)
  return (whom) => createHmac('sha256', key).update(whom).digest('base64url')
}

/** Compares in a time that does not tell how much was right. */
export function isSameToken(given: unknown, wanted: string): boolean {
  const [a, b] = [Buffer.from(typeof given === 'string' ? given : ''), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
