import type { FastifyInstance, FastifyRequest } from 'fastify'
import { normalizePersonName, personNameMax } from '../../operations/actor.ts'
import { RequestRefused } from '../errors.ts'
import type { ConsoleParts } from '../parts.ts'
import type { SignInMethod } from './access.ts'
import {
  type ConsoleHosts,
  isFromProxy,
  refuseForeignEmbedding,
  refuseForeignForm,
  refuseForeignHost,
} from './refuseForeign.ts'
import { installSignIn, sendSignInPage } from './signIn.ts'

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

export interface GuardOptions extends ConsoleHosts {
  access: SignInMethod
  /** Who acts if there is no sign-in: `operator NAME`, for the log. */
  whoWithoutSignIn: string
  isReadOnly: boolean
}

export async function installGuard(app: FastifyInstance, options: GuardOptions, parts: ConsoleParts): Promise<void> {
  const { access, isReadOnly } = options
  const rights = { canChange: !isReadOnly, canSignOut: access.kind === 'password' }
  app.decorateRequest('viewer')
  app.addHook('onRequest', async (request) => {
    refuseForeignHost(request, options)
    if (isPost(request)) refuseForeignForm(request, options)
    else refuseForeignEmbedding(request)
  })
  if (access.kind === 'password') await installSignIn(app, access.hash, parts)
  app.addHook('onRequest', async (request, reply) => {
    const { changesNothing, needsNoViewer } = request.routeOptions.config ?? {}
    const person = personOf(request, options)
    if (person !== null) request.viewer = { ...person, ...rights }
    else if (!needsNoViewer) return sendSignInPage(request, reply)
    if (isReadOnly && isPost(request) && !changesNothing)
      throw new RequestRefused(403, 'This console was started with --read-only. Nothing was changed.')
  })
}

const isPost = ({ method }: FastifyRequest) => method !== 'GET' && method !== 'HEAD'

/** @returns null if the viewer has to sign in first @throws RequestRefused if the proxy names no user */
function personOf(
  request: FastifyRequest,
  { access, whoWithoutSignIn, ...place }: GuardOptions,
): Pick<Viewer, 'who' | 'session'> | null {
  switch (access.kind) {
    case 'open':
      return { who: whoWithoutSignIn, session: '' }
    case 'password': {
      const { name, sessionId } = request.session
      return name === undefined ? null : { who: `operator ${name}`, session: sessionId }
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
