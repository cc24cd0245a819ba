import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Who looks at a page: `request.viewer` of every route. */
export interface Viewer {
  /** For the event log, as the commands name it: `operator NAME`. */
  who: string
  /** What a form of theirs must carry. */
  csrf: string
  /** Their session, or the name by which the proxy knows them; '' where nobody is asked who they are. */
  session: string
  /** Whether they may change something; false with --read-only. */
  canChange: boolean
  /** Whether they came by a password. */
  canSignOut: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    viewer: Viewer
  }
  interface FastifyContextConfig {
    /** Shown to everybody who gets as far: the stylesheet, the page to sign in. */
    needsNoViewer?: true
    /** A form that changes nothing in the ledger: it is taken with --read-only, too. */
    changesNothing?: true
    /** Stays open: it has a bound of its own (liveRoutes.ts). */
    isStream?: true
  }
}

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
