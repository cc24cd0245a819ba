/** Who looks at a page. */
export interface Viewer {
  who: string
  /** Tells the viewers of a console apart. '' if there is only one. */
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
  interface Session {
    /** Of the operator who signed in. */
    name?: string
  }
}
