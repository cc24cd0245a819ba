import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

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
  const shared = { ...deps, metrics: { render: shareRendering(deps.metrics.render) } }
  const server = createServer(limits, (request, response) => void answer(shared, request, response))
  server.maxRequestsPerSocket = requestsPerConnectionMax
  server.timeout = silenceMs
  closeOldestConnectionsBeyond(server, connectionsMax)
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

/**
 * Ends an old connection for each new one beyond `connectionsMax`: the oldest without an answer, else the oldest idle
 * one, else the oldest. Spares the newer half, which had no time for an answer.
 *
 * Refusing new connections would let a client that holds all of them keep out the supervisor's probe.
 */
export function closeOldestConnectionsBeyond(server: Server, connectionsMax: number): void {
  const open = new Map<Socket, ServerResponse | null>()
  server.on('connection', (socket: Socket) => {
    if (open.size >= connectionsMax) endOne()
    open.set(socket, null)
    socket.on('close', () => open.delete(socket))
  })
  server.on(
    'request',
    ({ socket }: IncomingMessage, response: ServerResponse) => open.has(socket) && open.set(socket, response),
  )

  function endOne(): void {
    const all = [...open].slice(0, Math.ceil(connectionsMax / 2))
    const silent = all.find(([, response]) => !response?.headersSent)
    const idle = silent ?? all.find(([, response]) => response?.writableFinished)
    const [socket] = idle ?? all[0] ?? []
    if (socket === undefined) return
    open.delete(socket)
    socket.destroy()
  }
}

function shareRendering(render: () => Promise<string>): () => Promise<string> {
  let underWay: Promise<string> | null = null
  return () => {
    underWay ??= render().finally(() => {
      underWay = null
    })
    return underWay
  }
}

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
  const body = `${JSON.stringify({ ok: reasons.length === 0, reasons, pauses: pauses?.map(pauseJson) })}\n`
  return { status: reasons.length === 0 ? 200 : 503, type: jsonType, body }
}

/** Leaves out the detail, which quotes the service, because anyone can read this port. */
const pauseJson = ({ reason, sinceMs, untilMs }: SendingReadiness['pauses'][number]) => ({
  reason,
  since: new Date(sinceMs).toISOString(),
  until: untilMs === null ? null : new Date(untilMs).toISOString(),
})
