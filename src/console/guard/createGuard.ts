import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { hostname, isLoopback } from './hosts.ts'
import { Refused } from './refused.ts'
import { csrfToken, isSame } from './tokens.ts'

export interface GuardOptions {
  /** Whose console it is where nobody signs in: `operator NAME`. */
  who: string
  isReadOnly: boolean
}

/** Puts the guard in front of every route: who asks, and whether they may. */
export function createGuard(app: FastifyInstance, { who, isReadOnly }: GuardOptions): void {
  const key = randomBytes(32)
  app.decorateRequest('viewer')
  app.addHook('onRequest', async (request) => {
    const host = hostname(request.headers.host)
    if (host === null || !isLoopback(host))
      throw new Refused(403, 'The Host is not this machine: ask for localhost or 127.0.0.1.')
    if (changes(request)) refuseForeign(request)
  })
  app.addHook('onRequest', async (request, reply) => {
    const session = sessionOf(request, reply)
    request.viewer = { who, csrf: csrfToken(key, session), canChange: !isReadOnly, canSignOut: false }
  })
  app.addHook('preHandler', async (request) => {
    if (!changes(request)) return
    if (isReadOnly) throw new Refused(403, 'This console only reads (--read-only): nothing was changed.')
    const { csrf } = (request.body ?? {}) as { csrf?: unknown }
    if (typeof csrf !== 'string' || !isSame(csrf, request.viewer.csrf))
      throw new Refused(
        403,
        'This form is from before a restart of the console: load its page again. Nothing was changed.',
      )
  })
}

const changes = ({ method }: FastifyRequest) => method !== 'GET' && method !== 'HEAD'

/** A browser says which site's page sends a form; who says nothing is no browser, and has no form of ours. */
function refuseForeign({ headers, host }: FastifyRequest): void {
  const { origin, 'sec-fetch-site': site } = headers
  const isOwn = site === undefined ? origin !== undefined : site === 'same-origin'
  const isOfHost = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host.toLowerCase())
  if (!isOwn || !isOfHost) throw new Refused(403, "Another site's page sent this: nothing was changed.")
}

/** The session of a request; begins one where it has none of ours. */
function sessionOf(request: FastifyRequest, reply: FastifyReply): string {
  const name = `outboxd_console_${request.socket.localPort ?? 0}` // cookies of a host are sent to all its ports
  const found = request.unsignCookie(request.cookies[name] ?? '')
  if (found.valid) return found.value
  const session = randomUUID()
  reply.setCookie(name, session, { path: '/', httpOnly: true, sameSite: 'strict', signed: true })
  return session
}
