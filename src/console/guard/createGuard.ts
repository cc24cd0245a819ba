import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { nameMax, personName } from '../../operations/actor.ts'
import { createTurns, type Turns } from '../createTurns.ts'
import { Refused } from '../errors.ts'
import type { ConsoleParts } from '../parts.ts'
import type { Access } from './access.ts'
import { loginRoutes, sendLogin } from './login.ts'
import { isFromProxy, type Place, refuseForeignForm, refuseForeignHost, refuseForeignUse } from './refuseForeign.ts'
import { createSessions, type Sessions, sessionIdOf } from './sessions.ts'
import { createFormTokens, isSameToken, type Viewer } from './viewer.ts'

export interface GuardOptions extends Place {
  access: Access
  /** `operator NAME` for the log if nobody has to sign in. */
  who: string
  isReadOnly: boolean
}

/** Answers under way per session, so that one session does not take all connections to the ledger. */
const answersAtOnce = 4
const answersWaitingMax = 40

type Person = Pick<Viewer, 'who' | 'session'>

/**
 * Guards every route: is the Host ours, who asks, and for a form: is it from our page, with this viewer's token, and
 * may anything change?
 */
export function createGuard(app: FastifyInstance, options: GuardOptions, parts: ConsoleParts): void {
  const { access, isReadOnly } = options
  const tokenFor = createFormTokens()
  const loginToken = tokenFor('login')
  const sessions = createSessions(parts.clock)
  app.decorateRequest('viewer')
  const turnsOf = new Map<string, Turns>()

  async function waitForTurn(session: string, request: FastifyRequest, { raw }: FastifyReply): Promise<void> {
    if (session === '' || needsNoViewer(request)) return
    const turns = turnsOf.get(session) ?? createTurns(answersAtOnce, answersWaitingMax)
    turnsOf.set(session, turns)
    const turn = await turns.take()
    const end = () => {
      turn[Symbol.dispose]()
      if (turns.isIdle()) turnsOf.delete(session)
    }
    if (raw.closed) end()
    else raw.once('close', end)
  }

  app.addHook('onRequest', async (request, reply) => {
    refuseForeignHost(request, options)
    if (isPost(request)) refuseForeignForm(request, options)
    else refuseForeignUse(request)
    const person = personOf(request, options, sessions)
    if (person === null) return needsNoViewer(request) ? undefined : sendLogin(request, reply, { csrf: loginToken })
    const csrf = tokenFor(`session ${person.session}`)
    await waitForTurn(person.session, request, reply)
    request.viewer = { ...person, csrf, canChange: !isReadOnly, canSignOut: access.kind === 'password' }
  })
  app.addHook('preHandler', async (request) => {
    if (!isPost(request)) return
    const { csrf } = (request.body ?? {}) as { csrf?: unknown }
    if (!isSameToken(csrf, request.viewer?.csrf ?? loginToken))
      throw new Refused(
        403,
        'This form was shown before the console was started anew, or to somebody else: load its page again. Nothing was changed.',
      )
    if (isReadOnly && request.routeOptions.config?.changesNothing !== true)
      throw new Refused(403, 'This console was started with --read-only. Nothing was changed.')
  })
  if (access.kind === 'password') loginRoutes(app, { hash: access.hash, csrf: loginToken, sessions, parts })
}

const isPost = ({ method }: FastifyRequest) => method !== 'GET' && method !== 'HEAD'
const needsNoViewer = ({ routeOptions }: FastifyRequest) => routeOptions.config?.needsNoViewer === true

/** Returns null if the viewer has to sign in first. @throws Refused if the proxy does not say who asks */
function personOf(request: FastifyRequest, { access, who, ...place }: GuardOptions, sessions: Sessions): Person | null {
  switch (access.kind) {
    case 'open':
      return { who, session: '' }
    case 'password': {
      const session = sessionIdOf(request)
      const name = session && sessions.nameOf(session)
      return name ? { who: `operator ${name}`, session } : null
    }
    case 'proxy': {
      if (!isFromProxy(request, place))
        throw new Refused(
          403,
          'This console is asked through its proxy alone (CONSOLE_TRUST_PROXY), and this did not come from there.',
        )
      const name = nameByProxy(request, access.header)
      if (name === null)
        throw new Refused(
          401,
          `The proxy did not say who asks: it sets the header ${access.header} (CONSOLE_TRUST_HEADER) once, to a name in UTF-8 of at most ${nameMax} characters in one line.`,
        )
      return { who: `operator ${name}`, session: name }
    }
    default:
      return access satisfies never
  }
}

/** The header's name in UTF-8. A header that came twice counts as none, because the proxy let one through. */
function nameByProxy({ raw }: FastifyRequest, header: string): string | null {
  const values = raw.headersDistinct[header] ?? []
  return values.length === 1 ? personName(Buffer.from(values[0] ?? '', 'latin1').toString('utf8')) : null
}

/** Refuses U+0000 before a database is asked, because no text of Postgres can hold it. */
export function refuseUnstorable(app: FastifyInstance): void {
  app.addHook('preHandler', async ({ params, query, body }) => {
    if (holdsNul([params, query, body]))
      throw new Refused(400, 'What was sent holds the character U+0000, which no text in a database has: leave it out.')
  })
}

function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsNul)
}
