import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { systemClock } from '../clock.ts'
import type { DiscoverConfig } from '../config.ts'
import { accepted, endpointAt } from '../service/client.ts'
import { createConnect } from '../service/connect.ts'
import { describeFault } from '../service/networkFault.ts'

/** What a connection shows of itself. */
export type ConnectionSeen =
  | {
      kind: 'seen'
      /** Such as `TLSv1.3`; null without TLS. */
      tls: { protocol: string; certificateUntilMs: number | null } | null
      httpVersion: string
      /** Header `Connection` says close. */
      closes: boolean
      /** Header `Keep-Alive: timeout=`, in seconds. */
      keepAliveSeconds: number | null
      /** After how long the service ended it while it was idle; null where it had not, or nobody waited. */
      endedAfterMs: number | null
    }
  | { kind: 'failed'; why: string }

export interface LookOptions {
  accessToken: string
  mayLeave(): boolean
  /** How long to wait until the service ends the idle connection; 0: not. */
  idleMaxMs: number
}

const headMaxBytes = 16_384

/**
 * Connects, asks for an address that cannot exist, and reads the head of the answer: undici keeps all of this to itself.
 * Ends by the request's deadline and `idleMaxMs`.
 *
 * @returns null where the request was not to leave any more
 */
export async function lookAtConnection(
  { service }: Pick<DiscoverConfig, 'service'>,
  { accessToken, mayLeave, idleMaxMs }: LookOptions,
): Promise<ConnectionSeen | null> {
  const { origin, prefix } = endpointAt(service.baseUrl)
  let [socket, isLate]: [Socket | null, boolean] = [null, false]
  const deadline = setTimeout(() => {
    isLate = true
    socket?.destroy()
  }, service.requestTimeoutMs)
  try {
    socket = await open(origin, service)
    socket.on('error', () => {}) // whoever waits is told by the promise
    if (!mayLeave()) return null
    const headers = { host: new URL(origin).host, ...accepted, authorization: `Bearer ${accessToken}` }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`GET ${prefix}/api/v1/${randomUUID()} HTTP/1.1\r\n${lines.join('')}\r\n`)
    const head = readHead(await untilHead(socket))
    clearTimeout(deadline)
    if (head === null) return { kind: 'failed', why: 'the answer is not HTTP/1.1' }
    return { kind: 'seen', tls: tlsOf(socket), ...head, endedAfterMs: await untilEnded(socket, idleMaxMs) }
  } catch (error) {
    return { kind: 'failed', why: isLate ? 'no answer in time' : describeFault(error, socket !== null) }
  } finally {
    clearTimeout(deadline)
    socket?.destroy()
  }
}

/** @throws where none comes about */
function open(origin: string, service: DiscoverConfig['service']): Promise<Socket> {
  const { protocol, hostname, port } = new URL(origin)
  const connectMs = Math.min(service.requestTimeoutMs, 10_000)
  const connect = createConnect({ settings: service, clock: systemClock, connectMs, onCertificate() {} })
  return new Promise((resolve, reject) =>
    connect({ protocol, hostname, port }, (...[error, socket]) => (error ? reject(error) : resolve(socket))),
  )
}

/** @throws where the connection ends before */
function untilHead(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      if (text.length < headMaxBytes) text += chunk.toString('latin1')
      if (text.includes('\r\n\r\n') || text.length >= headMaxBytes) resolve(text)
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
  })
}

/** What the head of an answer says of its connection; null where it is none. Pure. */
export function readHead(
  text: string,
): { httpVersion: string; closes: boolean; keepAliveSeconds: number | null } | null {
  const version = /^HTTP\/(\d\.\d) \d{3}/.exec(text)?.[1]
  if (version === undefined) return null
  const head = text.split('\r\n\r\n', 1)[0] ?? ''
  const seconds = /^keep-alive:.*\btimeout=(\d{1,6})/im.exec(head)?.[1]
  const closes = /^connection:.*\bclose\b/im.test(head)
  return { httpVersion: version, closes, keepAliveSeconds: seconds === undefined ? null : Number(seconds) }
}

function tlsOf(socket: Socket): (ConnectionSeen & { kind: 'seen' })['tls'] {
  if (!(socket instanceof TLSSocket)) return null
  const untilMs = Date.parse(socket.getPeerCertificate().valid_to)
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    certificateUntilMs: Number.isNaN(untilMs) ? null : untilMs,
  }
}

function untilEnded(socket: Socket, idleMaxMs: number): Promise<number | null> {
  if (idleMaxMs === 0) return Promise.resolve(null)
  const sinceMs = performance.now()
  return new Promise((resolve) => {
    const enough = setTimeout(() => resolve(null), idleMaxMs)
    for (const event of ['end', 'close'] as const)
      socket.once(event, () => {
        clearTimeout(enough)
        resolve(performance.now() - sinceMs)
      })
  })
}
