/** Who looks at a page: `request.viewer` of every route but the login. */
export interface Viewer {
  /** For the event log, as the commands name it: `operator NAME`. */
  who: string
  /** What a form of theirs must carry. */
  csrf: string
  /** Whether they may change something; false with --read-only. */
  canChange: boolean
  /** Whether they came by a password. */
  canSignOut: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    viewer: Viewer
  }
}
