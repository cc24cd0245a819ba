import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { replaceEpochMsByIsoTimes } from '../time.ts'

export interface Readiness {
  /** Why the daemon does not work, for an operator; empty if the daemon works. */
  reasons: readonly string[]
}

/**
 * The answer of /readyz. An instance is ready in spite of a pause, because neither a restart nor another instance ends
 * a pause.
 */
export interface SendingReadiness extends Readiness {
  /** Epoch milliseconds; `untilMs` is null if only an operator ends the pause. */
  pauses: readonly { reason: string; sinceMs: number; untilMs: number | null }[]
}

export interface HttpServerDeps {
  host: string
  port: number
  metrics: { render(): Promise<string> }
  /** Any reason makes the supervisor restart the process. */
  live: () => Readiness
  /** Reasons if an essential loop does not succeed. */
  ready: () => SendingReadiness
}

export interface HttpServer {
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

export class AddressUnusable extends Error {
  override name = 'AddressUnusable'
}

const metricsType = 'text/plain; version=0.0.4; charset=utf-8'
const wordsType = 'text/plain; charset=utf-8'
const jsonType = 'application/json; charset=utf-8'

/** Serves /metrics, /livez and /readyz. @throws AddressUnusable */
export async function startHttpServer(deps: HttpServerDeps): Promise<HttpServer> {
  const server = createServer(limits, (request, response) => void answer(deps, request, response))
  server.maxRequestsPerSocket = requestsPerConnectionMax
  server.timeout = silenceMs
  server.maxConnections = connectionsMax
  await listen(server, deps)
  // Without this listener, a failed accept (too many open files) would end the process.
  server.on('error', () => {})
  const { port } = server.address() as AddressInfo
  const host = deps.host.includes(':') ? `[${deps.host}]` : deps.host
  return {
    port,
    url: `http://${host}:${port}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const limits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 8_192,
}

const connectionsMax = 200
/** Bounded, because each answer is kept until the client reads it. */
const requestsPerConnectionMax = 100
const silenceMs = 10_000

async function listen(server: Server, { host, port }: HttpServerDeps): Promise<void> {
  try {
    server.listen({ host, port })
    await once(server, 'listening')
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code
    throw new AddressUnusable(
      `cannot listen on ${host} port ${port} (${why}): set HTTP_HOST and HTTP_PORT to a free address`,
      { cause },
    )
  }
}

interface Reply {
  status: number
  type: string
  body: string
}

async function answer(deps: HttpServerDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume()
  const { status, type, body } = await reply(deps, request).catch(() => ({
    status: 500,
    type: wordsType,
    body: 'The process failed to answer. Its log may say why.\n',
  }))
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(status === 405 && { allow: 'GET, HEAD' }),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

async function reply(deps: HttpServerDeps, { method, url = '/' }: IncomingMessage): Promise<Reply> {
  const path = url.split('?', 1)[0]
  if (path !== '/metrics' && path !== '/livez' && path !== '/readyz')
    return { status: 404, type: wordsType, body: 'Not found. Try /metrics, /livez or /readyz.\n' }
  if (method !== 'GET' && method !== 'HEAD')
    return { status: 405, type: wordsType, body: 'Method not allowed: use GET or HEAD.\n' }
  if (path === '/metrics') return { status: 200, type: metricsType, body: await deps.metrics.render() }
  const { reasons, pauses } = path === '/livez' ? { ...deps.live(), pauses: undefined } : deps.ready()
  // Without the details, which quote the service, because anyone can read this port.
  const shown = pauses?.map(({ reason, sinceMs, untilMs }) => replaceEpochMsByIsoTimes({ reason, sinceMs, untilMs }))
  const body = `${JSON.stringify({ ok: reasons.length === 0, reasons, pauses: shown })}\n`
  return { status: reasons.length === 0 ? 200 : 503, type: jsonType, body }
}
