import { request } from 'node:http'
import type { Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import type { Clock } from '../clock.ts'
import type { Credentials } from '../config.ts'
import { HandshakeEnded } from './networkFault.ts'

/** PEM texts, and the proxy's URL. If `ca` is null, Node's certificate authorities are used. */
export type ConnectionSettings = Pick<Credentials, 'ca' | 'cert' | 'key' | 'proxy'>

export interface ConnectorDeps {
  settings: ConnectionSettings
  clock: Pick<Clock, 'stopwatch'>
  connectMs: number
  onCertificate(host: string, expiresAtMs: number): void
}

type Connect = buildConnector.connector
type Connected = Parameters<Connect>[1]

/**
 * The wait for the service to judge our certificate is twice the time that the handshake took, but within these bounds.
 */
const confirmMinMs = 100
const confirmMaxMs = 1_000
/** Bounds the repeats, because on some machines timers always fire late. */
const waitsMax = 5

/**
 * Connects with TLS 1.2 or 1.3 to a host whose certificate is valid, whatever NODE_OPTIONS or
 * NODE_TLS_REJECT_UNAUTHORIZED say.
 *
 * Under TLS 1.3 a service judges our certificate after our handshake is done (RFC 8446, 4.4), so a request sent at once
 * may or may not arrive. A request therefore leaves only after the service's session ticket, or, without a ticket,
 * after twice the handshake's time.
 *
 * @throws Error if a PEM text cannot be used
 */
export function createConnector({ settings, clock, connectMs, onCertificate }: ConnectorDeps): Connect {
  const { ca, cert, key, proxy } = settings
  const given = { ...(ca !== null && { ca }), ...(cert !== null && { cert }), ...(key !== null && { key }) }
  const secureContext = createSecureContext({ ...given, minVersion: 'TLSv1.2' })
  const openDirectly = buildConnector({ secureContext, rejectUnauthorized: true, allowH2: false, timeout: connectMs })
  const open = proxy === null ? openDirectly : throughProxy(proxy, connectMs, openDirectly)
  return (options, callback) => {
    const tookMs = clock.stopwatch()
    open(options, (...[error, socket]) => {
      if (error) return callback(options.protocol === 'https:' ? nameEnd(error) : error, null)
      tellCertificate(socket, (expiresAtMs) => onCertificate(options.hostname, expiresAtMs))
      if (!isJudgedLater(socket)) return callback(null, skipInterimResponses(socket))
      const waitMs = Math.min(confirmMaxMs, Math.max(confirmMinMs, 2 * tookMs()))
      confirm(socket, { waitMs, stopwatch: clock.stopwatch }, callback)
    })
  }
}

function throughProxy(proxy: string, connectMs: number, open: Connect): Connect {
  return (options, callback) => {
    const isTls = options.protocol === 'https:'
    openTunnel(proxy, `${options.hostname}:${options.port || (isTls ? 443 : 80)}`, connectMs).then(
      (tunnel) => (isTls ? open({ ...options, httpSocket: tunnel }, callback) : callback(null, tunnel)),
      (error: Error) => callback(error, null),
    )
  }
}

function nameEnd(error: Error): Error {
  return 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
    ? new HandshakeEnded({ cause: error })
    : error
}

/** Skips a resumed TLS session: it brings no certificate, and that of the first handshake still counts. */
function tellCertificate(socket: Socket, onCertificate: (expiresAtMs: number) => void): void {
  const expiresAtMs = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : Number.NaN
  if (Number.isFinite(expiresAtMs)) onCertificate(expiresAtMs)
}

const isJudgedLater = (socket: Socket): boolean =>
  socket instanceof TLSSocket && socket.getProtocol() === 'TLSv1.3' && !socket.isSessionReused()

/**
 * Hands the connection over when the service has accepted our certificate, or had time to refuse it. After a suspension
 * of the process, the wait starts again.
 */
function confirm(
  socket: Socket,
  { waitMs, stopwatch }: { waitMs: number; stopwatch: Clock['stopwatch'] },
  callback: Connected,
): void {
  let timer: NodeJS.Timeout
  listen(waitsMax)
  const ended = () => refuse(new HandshakeEnded())
  const failed = (error: Error) => refuse(nameEnd(error))
  socket.once('session', letIn).once('error', failed).once('end', ended).once('close', ended)

  function listen(times: number): void {
    const waitedMs = stopwatch()
    const isAttentive = () => waitedMs() < 1.5 * waitMs
    timer = setTimeout(() => (isAttentive() || times === 1 ? letIn() : listen(times - 1)), waitMs)
  }
  function stopListening(): void {
    clearTimeout(timer)
    socket.off('session', letIn).off('error', failed).off('end', ended).off('close', ended)
  }
  function letIn(): void {
    stopListening()
    callback(null, skipInterimResponses(socket))
  }
  function refuse(error: Error): void {
    stopListening()
    socket.on('error', () => {}).destroy()
    callback(error, null)
  }
}

/** Means that no byte of the request has left. */
class TunnelRefused extends Error {
  override name = 'TunnelRefused'
  /** `PROXY_` and an HTTP status, `TIMEOUT`, `CLOSED`, or the code of the fault. */
  readonly code: string
  constructor(why: string, options?: ErrorOptions) {
    super('the proxy did not connect to the service', options)
    this.code = `PROXY_${why}`
  }
}

/**
 * Asks a proxy to connect to `target`, host:port (CONNECT, RFC 9110, 9.3.6). Replaces undici's ProxyAgent, which names
 * faults only in texts, and waits for a hanging proxy as long as for an answer.
 *
 * @throws TunnelRefused
 */
function openTunnel(proxy: string, target: string, timeoutMs: number): Promise<Socket> {
  const { hostname, port, username, password } = new URL(proxy)
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  return new Promise((resolve, reject) => {
    const asking = request({
      method: 'CONNECT',
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || 80,
      path: target,
      headers: { host: target, ...(username !== '' && { 'proxy-authorization': authorization }) },
      agent: false,
    })
    const timer = setTimeout(() => asking.destroy(new TunnelRefused('TIMEOUT')), timeoutMs)
    asking.once('connect', ({ statusCode = 0 }, socket: Socket, first: Buffer) => {
      clearTimeout(timer)
      if (statusCode < 200 || statusCode > 299) {
        socket.on('error', () => {}).destroy()
        return reject(new TunnelRefused(`${statusCode}`))
      }
      if (first.length > 0) socket.unshift(first)
      resolve(socket)
    })
    asking.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      reject(error instanceof TunnelRefused ? error : new TunnelRefused(whyOf(error), { cause: error }))
    })
    asking.end()
  })
}

const whyOf = ({ code = 'CLOSED' }: NodeJS.ErrnoException): string => (code === 'ECONNRESET' ? 'CLOSED' : code)

const headMaxBytes = 16_384
const interimStart = 'HTTP/1.1 1'
const wholeInterim = /^HTTP\/1\.1 1(?!01)[\s\S]*?\r\n\r\n/

/** True if the text may be the start of a 1xx answer. False for 101, which ends the exchange. */
const isBegun = (text: string) =>
  (text.startsWith(interimStart) || interimStart.startsWith(text)) && text.slice(9, 12) !== '101'

/**
 * Drops 1xx answers, as clients must (RFC 9110, 15.2). undici 8 closes the connection on `100 Continue`, and then it is
 * unknown if the POST arrived.
 */
export function createInterimResponseFilter() {
  let isHead = true
  let held = Buffer.alloc(0)
  return {
    /** Call when a request leaves, so that the next bytes are read as the head of an answer. */
    begin(): void {
      isHead = true
    },
    /** @returns the bytes for the parser, beginning with bytes that were held back before */
    pass(chunk: Buffer): Buffer {
      if (!isHead) return chunk
      let bytes = Buffer.concat([held, chunk])
      held = Buffer.alloc(0)
      for (;;) {
        const text = bytes.toString('latin1', 0, headMaxBytes)
        const interim = wholeInterim.exec(text)?.[0]
        if (interim !== undefined) {
          bytes = bytes.subarray(interim.length)
          continue
        }
        isHead = bytes.length < headMaxBytes && isBegun(text)
        if (!isHead) return bytes
        held = bytes
        return Buffer.alloc(0)
      }
    },
  }
}

/**
 * Filters what undici's parser reads. Each write begins an exchange, because a connection has one request at a time.
 */
function skipInterimResponses(socket: Socket): Socket {
  const filter = createInterimResponseFilter()
  const read = socket.read.bind(socket)
  const write = socket.write.bind(socket)
  socket.read = (size?: number) => {
    for (;;) {
      const chunk: Buffer | null = read(size)
      if (chunk === null) return null
      const passed = filter.pass(chunk)
      if (passed.length > 0) return passed
    }
  }
  socket.write = ((...args: Parameters<typeof write>) => {
    filter.begin()
    return write(...args)
  }) as typeof socket.write
  return socket
}
