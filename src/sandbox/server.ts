import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { packageFolder } from '../packageFolder.ts'
import { type Answer, refusalAnswer, sendAnswer, tokenErrorAnswer } from './endpoints/problemAnswer.ts'
import { createOrder, readOrder, readTransaction, submitData } from './endpoints/recordEndpoints.ts'
import { grantToken } from './endpoints/tokenEndpoint.ts'
import type { Arrival, Exchange, Gate, Handler, SandboxParts } from './exchange.ts'
import type { Delivery } from './faults/applyFault.ts'
import { stripIpv4Mapping } from './gate/addresses.ts'
import { admitApiRequest, admitTokenRequest, admitWithoutChecks } from './gate/gates.ts'
import { maskBody, maskUnknownPath } from './gate/maskSecrets.ts'
import { toServiceTimeUs } from './sandboxClock.ts'
import type { LiveSettings, SandboxSettings } from './sandboxSettings.ts'
import { serveRequest } from './serve.ts'

declare module 'fastify' {
  interface FastifyRequest {
    isUtf8: boolean
  }
}

const checkingMs = 1000

const unreadable = refusalAnswer(400, 'The path of the request cannot be read.')

type ServerLimits = Pick<SandboxSettings, 'requestTimeoutSeconds' | 'connectionsMax'>

export function buildServer(
  parts: SandboxParts,
  { requestTimeoutSeconds, connectionsMax }: ServerLimits,
): FastifyInstance {
  const route = (endpoint: Exchange['endpoint'], gate: Gate, handler: Handler) =>
    async function answer(request: FastifyRequest, reply: FastifyReply) {
      const refusal = refuseRepeatedHeader(request, endpoint)
      const answering: Handler = refusal === undefined ? handler : async () => ({ answer: refusal })
      return deliver(parts, reply, await serveRequest(parts, readArrival(parts, request, endpoint), gate, answering))
    }
  const otherwise = (request: FastifyRequest, reply: FastifyReply, answerBy: (live: LiveSettings) => Answer) => {
    const handler: Handler = async (_parts, { client }) => ({ answer: answerBy(parts.liveSettingsOf(client)) })
    return route(endpointOf(request), gateOf(request), handler)(request, reply)
  }
  const app = Fastify({
    bodyLimit: parts.bodyLimitBytes,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    requestTimeout: requestTimeoutSeconds * 1000,
    keepAliveTimeout: parts.liveSettingsOf(null).keepAliveSeconds * 1000,
    http: {
      headersTimeout: requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: checkingMs,
    },
    frameworkErrors: (_error, request, reply) => void otherwise(request, reply, () => unreadable),
  })
  app.server.maxConnections = connectionsMax
  app.decorateRequest('isUtf8', true)
  app.addHook('onSend', async (_request, reply) => {
    const nowUs = toServiceTimeUs(parts.clock.nowUs(), parts.liveSettingsOf(null))
    reply.header('date', new Date(nowUs / 1000).toUTCString()) // Node would send the system's time
    const { keepAliveSeconds } = parts.liveSettingsOf(null)
    app.server.keepAliveTimeout = keepAliveSeconds * 1000 // the setting may have changed
    if (parts.closing.aborted || keepAliveSeconds === 0) reply.header('connection', 'close')
  })
  // Keeps the body as text, because the request log stores it and amounts are checked by their digits.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    request.isUtf8 = isUtf8(body)
    done(null, body.toString('utf8'))
  })

  for (const { endpoint, method, url, gate, handler } of routes)
    app.route({ method, url, handler: route(endpoint, gate, handler) })
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json').send(await readFile(openApiPath)))

  app.setNotFoundHandler((request, reply) =>
    otherwise(request, reply, (live) => refuseWrongPathOrMethod(request.method, pathOf(request), live)),
  )
  app.setErrorHandler(async (error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) {
      process.stderr.write(
        `sandbox: ${request.method} ${maskUnknownPath(pathOf(request))}: ${error.stack ?? error.message}\n`,
      )
      return sendAnswer(reply, refusalAnswer(500, 'The sandbox failed. Its stderr has the error.'))
    }
    return otherwise(request, reply, ({ tooLargeStatus }) =>
      status === 413
        ? refusalAnswer(tooLargeStatus, `The body is larger than ${parts.bodyLimitBytes} bytes.`)
        : refusalAnswer(status, 'The request cannot be read.'),
    )
  })
  return app
}

/** Written by `npm run docs:generate`. */
const openApiPath = join(packageFolder, 'assets', 'openapi.json')

const routes = [
  { endpoint: 'token', method: 'POST', url: '/oauth/token', gate: admitTokenRequest, handler: grantToken },
  { endpoint: 'submit', method: 'POST', url: '/api/v1/data', gate: admitApiRequest, handler: submitData },
  { endpoint: 'status', method: 'GET', url: '/api/v1/data/:id', gate: admitApiRequest, handler: readTransaction },
  { endpoint: 'order', method: 'POST', url: '/api/v1/orders', gate: admitApiRequest, handler: createOrder },
  { endpoint: 'order_status', method: 'GET', url: '/api/v1/orders/:id', gate: admitApiRequest, handler: readOrder },
] as const

function refuseWrongPathOrMethod(method: string, path: string, { wrongMethodStatus }: LiveSettings): Answer {
  const route = routes.find(({ url }) => path.replace(/^(\/api\/v1\/\w+\/)[^/]+$/, '$1:id') === url)
  const allow = path === '/openapi.json' ? 'GET' : route?.method
  if (allow === undefined) return refusalAnswer(404, `There is no ${method} ${path} here.`)
  return refusalAnswer(
    wrongMethodStatus,
    `${path} takes only ${allow}.`,
    {},
    wrongMethodStatus === 405 ? { allow } : {},
  )
}

function readArrival({ clients }: SandboxParts, request: FastifyRequest, endpoint: Exchange['endpoint']): Arrival {
  const body = typeof request.body === 'string' ? request.body : ''
  const contentType = request.headers['content-type'] ?? ''
  return {
    endpoint,
    method: request.method,
    path: endpoint === 'other' ? maskUnknownPath(pathOf(request)) : pathOf(request),
    id: (request.params as { id?: string } | undefined)?.id ?? '',
    address: stripIpv4Mapping(request.socket.remoteAddress),
    authorization: request.headers.authorization,
    contentType,
    header: (name) => request.raw.headersDistinct[name.toLowerCase()]?.[0],
    body,
    maskedBody: maskBody({ endpoint, contentType, body }, (text) => clients.containsSecret(text)),
    isUtf8: request.isUtf8,
  }
}

/** Refuses a request with a repeated header, because Node would take the first value or join both. */
function refuseRepeatedHeader({ raw }: FastifyRequest, endpoint: Exchange['endpoint']): Answer | undefined {
  const names = ['authorization', 'content-type', 'idempotency-key']
  const name = names.find((each) => (raw.headersDistinct[each]?.length ?? 0) > 1)
  if (name === undefined) return undefined
  const detail = `The header ${name} came more than once.`
  return endpoint === 'token' ? tokenErrorAnswer(400, 'invalid_request', detail) : refusalAnswer(400, detail)
}

function gateOf(request: FastifyRequest): Gate {
  const path = pathOf(request)
  if (path === '/oauth/token') return admitTokenRequest
  return path.startsWith('/api/') ? admitApiRequest : admitWithoutChecks
}

function endpointOf(request: FastifyRequest): Exchange['endpoint'] {
  const path = pathOf(request)
  return routes.find(({ method, url }) => method === request.method && url === path)?.endpoint ?? 'other'
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? ''
}

function deliver({ closing }: SandboxParts, reply: FastifyReply, delivery: Delivery) {
  if (delivery.kind === 'drop') {
    reply.hijack()
    reply.raw.destroy()
    return reply
  }
  const { status, headers, contentType, body, byteIntervalMs } = delivery
  reply.code(status).headers(headers).header('content-type', contentType)
  if (byteIntervalMs === 0) return reply.send(body)
  const bytes = Buffer.from(body)
  return reply.header('content-length', bytes.length).send(Readable.from(drip(bytes, byteIntervalMs, closing)))
}

/** Sends one byte every `dripMs`. Throws when the sandbox closes, so that the connection is cut. */
async function* drip(bytes: Buffer, dripMs: number, signal: AbortSignal) {
  for (const byte of bytes) {
    yield Buffer.of(byte)
    await delay(dripMs, undefined, { signal })
  }
}

/** When the sandbox closes, requests that are unfinished after this time are cut off. */
const graceMs = 4_500

const idleCheckMs = 50

export async function finishRequestsAndClose(app: FastifyInstance): Promise<void> {
  const idleCheck = setInterval(() => app.server.closeIdleConnections(), idleCheckMs)
  const impatience = setTimeout(() => app.server.closeAllConnections(), graceMs)
  try {
    await app.close()
  } finally {
    clearInterval(idleCheck)
    clearTimeout(impatience)
  }
}
