import type { FastifyInstance, FastifyRequest } from 'fastify'
import { normalizePersonName, personNameMax } from '../../operations/actor.ts'
import { createConcurrencyLimit } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'
import type { ConsoleParts } from '../parts.ts'
import type { SignInMethod } from './access.ts'
import { addLoginRoutes, sendLoginPage } from './login.ts'
import {
  type ConsoleHosts,
  isFromProxy,
  refuseForeignEmbedding,
  refuseForeignForm,
  refuseForeignHost,
} from './refuseForeign.ts'
import { createSessionStore, type SessionStore, sessionIdOf } from './sessions.ts'
import { createFormTokenMaker, isSameToken, type Viewer } from './viewer.ts'

export interface GuardOptions extends ConsoleHosts {
  access: SignInMethod
  /** Who acts if there is no sign-in: `operator NAME`, for the log. */
  whoWithoutSignIn: string
  isReadOnly: boolean
}

/** Per session. A browser opens six connections at most. */
const answersAtOnceMax = 10

type Person = Pick<Viewer, 'who' | 'session'>

export function installGuard(app: FastifyInstance, options: GuardOptions, parts: ConsoleParts): void {
  const { access, isReadOnly } = options
  const tokenFor = createFormTokenMaker()
  const loginToken = tokenFor('login')
  const sessions = createSessionStore(parts.clock)
  app.decorateRequest('viewer')
  const answers = createConcurrencyLimit(answersAtOnceMax)

  app.addHook('onRequest', async (request, reply) => {
    refuseForeignHost(request, options)
    if (isPost(request)) refuseForeignForm(request, options)
    else refuseForeignEmbedding(request)
    const person = personOf(request, options, sessions)
    if (person === null) return needsNoViewer(request) ? undefined : sendLoginPage(request, reply, loginToken)
    const csrf = tokenFor(`session ${person.session}`)
    if (person.session !== '' && !needsNoViewer(request)) {
      const answer = answers.begin(person.session)
      if (reply.raw.closed) answer[Symbol.dispose]()
      else reply.raw.once('close', () => answer[Symbol.dispose]())
    }
    request.viewer = { ...person, csrf, canChange: !isReadOnly, canSignOut: access.kind === 'password' }
  })
  app.addHook('preHandler', async (request) => {
    if (!isPost(request)) return
    const { csrf } = (request.body ?? {}) as { csrf?: unknown }
    if (!isSameToken(csrf, request.viewer?.csrf ?? loginToken))
      throw new RequestRefused(
        403,
        'This form is from before the console restarted, or from another user. Load its page again. Nothing was changed.',
      )
    if (isReadOnly && request.routeOptions.config?.changesNothing !== true)
      throw new RequestRefused(403, 'This console was started with --read-only. Nothing was changed.')
  })
  if (access.kind === 'password') addLoginRoutes(app, { hash: access.hash, csrf: loginToken, sessions, parts })
}

const isPost = ({ method }: FastifyRequest) => method !== 'GET' && method !== 'HEAD'
const needsNoViewer = ({ routeOptions }: FastifyRequest) => routeOptions.config?.needsNoViewer === true

/** @returns null if the viewer has to sign in first @throws RequestRefused if the proxy names no user */
function personOf(
  request: FastifyRequest,
  { access, whoWithoutSignIn, ...place }: GuardOptions,
  sessions: SessionStore,
): Person | null {
  switch (access.kind) {
    case 'open':
      return { who: whoWithoutSignIn, session: '' }
    case 'password': {
      const session = sessionIdOf(request)
      const name = session && sessions.nameOf(session)
      return name ? { who: `operator ${name}`, session } : null
    }
    case 'proxy': {
      if (!isFromProxy(request, place))
        throw new RequestRefused(
          403,
          'This console answers only its proxy (CONSOLE_TRUST_PROXY), and this request came from another address.',
        )
      const name = nameByProxy(request, access.header)
      if (name === null)
        throw new RequestRefused(
          401,
          `The proxy did not name the user. It must set the header ${access.header} (CONSOLE_TRUST_HEADER) once, to a name in UTF-8 of at most ${personNameMax} characters in one line.`,
        )
      return { who: `operator ${name}`, session: name }
    }
    default:
      return access satisfies never
  }
}

/** Null if the header came twice, because the proxy then passed on one from a browser. */
function nameByProxy({ raw }: FastifyRequest, header: string): string | null {
  const values = raw.headersDistinct[header] ?? []
  return values.length === 1 ? normalizePersonName(Buffer.from(values[0] ?? '', 'latin1').toString('utf8')) : null
}
