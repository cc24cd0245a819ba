import { Agent, type Dispatcher } from 'undici'
import type { Clock } from '../clock.ts'
import type { NoAnswerCause } from '../model/service.ts'
import { type ConnectionSettings, createConnector } from './connect.ts'
import { describeNetworkFault, isHostError, isTimeoutError } from './networkFault.ts'

/** `path` begins with a slash and is sent unchanged. */
export interface HttpRequest {
  method: 'GET' | 'POST'
  origin: string
  path: string
  headers: Record<string, string>
  body: string | null
  /** Called just before the first byte leaves. */
  mayLeave(): boolean
}

export type HttpAnswer =
  | {
      kind: 'response'
      status: number
      headers: Record<string, string>
      text: string
      /** Why `text` is not the whole body; null for a whole body. */
      unreadable: string | null
      tookMs: number
    }
  | { kind: 'no-answer'; sent: boolean; cause: NoAnswerCause; detail: string; tookMs: number }

export interface HttpClient {
  /** @returns null if the request did not leave */
  exchange(request: HttpRequest): Promise<HttpAnswer | null>
  close(): Promise<void>
}

interface HttpDeps {
  clock: Clock
  /** Measured from the call to the last byte of the answer. */
  timeoutMs: number
  /** Per origin and method. A further request waits while its deadline runs. */
  connections: number
  answerMaxBytes: number
  /** Called for each request. A different object closes the connections and opens new ones. */
  settings: () => ConnectionSettings
  onCertificate(host: string, expiresAtMs: number): void
}

/**
 * Creates an HTTP client for a service that must get nothing twice: HTTP/1.1, no retries, no redirects, one deadline, a
 * bound on the bytes read.
 *
 * Each POST has its own connection, because the service may be closing a kept connection, and then it is unknown if the
 * POST arrived.
 */
export function createHttpClient(deps: HttpDeps): HttpClient {
  let inForce = createAgents(deps)
  const closing = new Set<Promise<unknown>>()

  function agents(): Agents {
    if (inForce.settings === deps.settings()) return inForce
    const former = inForce
    inForce = createAgents(deps)
    const closed = close(former).finally(() => closing.delete(closed))
    closing.add(closed)
    return inForce
  }

  let closed: Promise<unknown> | null = null
  return {
    exchange: (request) => exchange(agents()[request.method], request, deps),
    async close(): Promise<void> {
      closed ??= Promise.all([close(inForce), ...closing])
      await closed
    },
  }
}

interface Agents {
  settings: ConnectionSettings
  GET: Agent
  POST: Agent
}

function createAgents(deps: HttpDeps): Agents {
  const settings = deps.settings()
  return { settings, GET: createAgent(deps, settings), POST: createAgent(deps, settings) }
}

const close = ({ GET, POST }: Agents): Promise<unknown> => Promise.all([GET.close(), POST.close()])

function createAgent(deps: HttpDeps, settings: ConnectionSettings): Agent {
  const { clock, connections, timeoutMs, onCertificate } = deps
  return new Agent({
    allowH2: false,
    pipelining: 1,
    connections,
    // Disables undici's timeouts, because they never end an answer that comes byte by byte. The deadline in `exchange`
    // does.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: createConnector({ settings, clock, connectMs: Math.min(timeoutMs, 10_000), onCertificate }),
  })
}

function exchange(agent: Agent, request: HttpRequest, deps: HttpDeps): Promise<HttpAnswer | null> {
  return new Promise((resolve) => {
    const tookMs = deps.clock.stopwatch()
    const answer = new AnswerReader(deps.answerMaxBytes, request.mayLeave, (outcome) => {
      clearTimeout(deadline)
      resolve(outcome && { ...outcome, tookMs: tookMs() })
    })
    // Waits one more turn of the event loop, because a resumed process runs timers before it reads what has arrived.
    const deadline = setTimeout(() => setImmediate(() => answer.giveUp(deps.timeoutMs)), deps.timeoutMs)
    const { origin, path, method, headers, body } = request
    try {
      agent.dispatch({ origin, path, method, headers, body, idempotent: false, reset: method === 'POST' }, answer)
    } catch (error) {
      answer.onResponseError(null, error)
    }
  })
}

type Outcome = HttpAnswer extends infer A ? (A extends HttpAnswer ? Omit<A, 'tookMs'> : never) : never

/**
 * Follows one request. undici calls `onRequestStart` in the turn in which it writes the first byte, so this process
 * knows if the request began to leave. A request that may not leave is aborted there, unsent.
 */
class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number
  readonly #mayLeave: () => boolean
  readonly #settle: (outcome: Outcome | null) => void
  #settled = false
  #sent = false
  #controller: Dispatcher.DispatchController | null = null
  #status = 0
  #headers: Record<string, string> = {}
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(maxBytes: number, mayLeave: () => boolean, settle: (outcome: Outcome | null) => void) {
    this.#maxBytes = maxBytes
    this.#mayLeave = mayLeave
    this.#settle = settle
  }

  giveUp(afterMs: number): void {
    const detail = `no complete answer within ${afterMs / 1000} s`
    this.#end({ kind: 'no-answer', sent: this.#sent, cause: 'timeout', detail })
    this.#controller?.abort(new Error(detail))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (!this.#mayLeave()) this.#end(null)
    if (this.#settled) controller.abort(new Error('given up before it was sent'))
    else this.#sent = true
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status
    this.#headers = firstOfEach(headers)
    const encoding = this.#headers['content-encoding']?.trim().toLowerCase() || 'identity'
    if (encoding !== 'identity') this.#stopReading(controller, `a body encoded as ${encoding}, which was not asked for`)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
    if (this.#bytes > this.#maxBytes) this.#stopReading(controller, `a body of more than ${this.#maxBytes} bytes`)
  }

  onResponseEnd(): void {
    this.#respond(null)
  }

  onResponseError(_controller: unknown, error: unknown): void {
    const detail = describeNetworkFault(error, this.#sent)
    this.#end({ kind: 'no-answer', sent: this.#sent, cause: this.#causeOf(error), detail })
  }

  #causeOf(error: unknown): NoAnswerCause {
    if (isTimeoutError(error)) return 'timeout'
    return !this.#sent && isHostError(error) ? 'host' : 'network'
  }

  #stopReading(controller: Dispatcher.DispatchController, why: string): void {
    this.#respond(why)
    controller.abort(new Error(why))
  }

  #respond(unreadable: string | null): void {
    const text = new TextDecoder().decode(Buffer.concat(this.#chunks))
    this.#end({ kind: 'response', status: this.#status, headers: this.#headers, text, unreadable })
  }

  #end(outcome: Outcome | null): void {
    if (this.#settled) return
    this.#settled = true
    this.#chunks = []
    this.#settle(outcome)
  }
}

function firstOfEach(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const firsts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const first = Array.isArray(value) ? value[0] : value
    if (first !== undefined) firsts[name.toLowerCase()] = first
  }
  return firsts
}
