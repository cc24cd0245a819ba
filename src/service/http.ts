import { Agent, type Dispatcher } from 'undici'
import type { Clock } from '../clock.ts'
import { type ConnectionSettings, createConnect } from './connect.ts'
import { describeFault, isTimeout } from './networkFault.ts'

/** One HTTP/1.1 request. `path` begins with a slash and is sent as it stands. */
export interface HttpRequest {
  method: 'GET' | 'POST'
  origin: string
  path: string
  headers: Record<string, string>
  body: string | null
  /** Asked when the request begins to leave, which a handshake may have put off: where not, it does not. */
  mayLeave(): boolean
}

/** What came back, as bytes on the wire: nothing decoded but the text. */
export type HttpAnswer =
  | {
      kind: 'response'
      status: number
      /** Names in lower case; of a repeated header, the first. */
      headers: Record<string, string>
      /** The body as far as it was read. */
      text: string
      /** Why `text` is not the whole body; null if it is. */
      unreadable: string | null
      tookMs: number
    }
  | { kind: 'no-answer'; sent: boolean; cause: 'timeout' | 'network' | 'suspended'; detail: string; tookMs: number }

export interface Http {
  /** @returns null if the request may not leave any more */
  exchange(request: HttpRequest): Promise<HttpAnswer | null>
  /** Lets the requests on the wire finish (each ends by its deadline) and closes the connections. */
  close(): Promise<void>
}

interface HttpDeps {
  clock: Clock
  /** For the whole request, from the call to the last byte of the answer. */
  timeoutMs: number
  /** Requests at once, per origin and method; one more would wait for a connection with its deadline running. */
  connections: number
  /** More of an answer's body is not read. */
  answerMaxBytes: number
  /** What a new connection is made with; asked for each request. The same object says the same. */
  settings: () => ConnectionSettings
  onCertificate(host: string, expiresAtMs: number): void
}

/**
 * HTTP as a service that must not get anything twice needs it: HTTP/1.1 alone, nothing repeated,
 * no redirect followed, one deadline over everything, a cap on what is read.
 *
 * A POST gets a connection of its own. On a connection kept alive it could meet the service just closing it, and
 * then nobody can say whether it arrived; a handshake is cheap beside a person who has to find out.
 */
export function createHttp(deps: HttpDeps): Http {
  let inForce = createAgents(deps)
  const closing = new Set<Promise<unknown>>()

  /** Connections made with what was in force before end with their requests. */
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
    async close() {
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
    // The deadline below is the only clock: these two would let a dripping answer run for ever.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: createConnect({ settings, clock, connectMs: Math.min(timeoutMs, 10_000), onCertificate }),
  })
}

function exchange(agent: Agent, request: HttpRequest, deps: HttpDeps): Promise<HttpAnswer | null> {
  return new Promise((resolve) => {
    const tookMs = deps.clock.stopwatch()
    const standstill = watchForStandstill(deps.clock)
    const answer = new AnswerReader(deps.answerMaxBytes, request.mayLeave, (outcome) => {
      clearTimeout(deadline)
      const stoodStillMs = standstill.end()
      const judged = outcome === null || stoodStillMs === 0 ? outcome : withoutJudgement(outcome, stoodStillMs)
      resolve(judged && { ...judged, tookMs: tookMs() })
    })
    // A process that wakes up runs its timers before it reads what has come meanwhile: one turn of the loop reads that first.
    const deadline = setTimeout(() => setImmediate(() => answer.giveUp(deps.timeoutMs)), deps.timeoutMs)
    const { origin, path, method, headers, body } = request
    try {
      agent.dispatch({ origin, path, method, headers, body, idempotent: false, reset: method === 'POST' }, answer)
    } catch (error) {
      answer.onResponseError(null, error)
    }
  })
}

const tickMs = 500
/** A tick that comes later than this was held up by a process that stood still: SIGSTOP, a suspended machine. */
const stoodStillMinMs = 2_000

/** Notices while a request is under way whether this process stood still. `end` says for how long; 0: it did not. */
function watchForStandstill(clock: HttpDeps['clock']): { end(): number } {
  let stoodStillMs = 0
  let sinceTickMs = clock.stopwatch()
  function look() {
    const lateMs = sinceTickMs() - tickMs
    if (lateMs > stoodStillMinMs) stoodStillMs += lateMs
    sinceTickMs = clock.stopwatch()
  }
  const ticking = setInterval(look, tickMs)
  return {
    end() {
      clearInterval(ticking)
      look()
      return stoodStillMs
    },
  }
}

/** An answer that came is one. What ended without one while this process stood still says nothing about the service. */
function withoutJudgement(outcome: Outcome, stoodStillMs: number): Outcome | null {
  if (outcome.kind !== 'no-answer') return outcome
  if (!outcome.sent) return null
  const detail = `${outcome.detail}; outboxd itself stood still for ${Math.round(stoodStillMs / 1000)} s meanwhile`
  return { ...outcome, cause: 'suspended', detail }
}

type Outcome = HttpAnswer extends infer A ? (A extends HttpAnswer ? Omit<A, 'tookMs'> : never) : never

/**
 * Follows one request. Whether it began to leave is known exactly, for as long as this process lives: undici calls
 * `onRequestStart` in the same turn in which it writes the first byte (and publishes `undici:client:sendHeaders`),
 * once it has a connection, and never without it. A request that was given up before, or that may not leave any more, is
 * aborted there, unsent.
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
    // A few kB of gzip can unpack to gigabytes, and we asked for identity.
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
    const cause = isTimeout(error) ? 'timeout' : 'network'
    this.#end({ kind: 'no-answer', sent: this.#sent, cause, detail: describeFault(error, this.#sent) })
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
