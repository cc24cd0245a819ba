import { request } from 'node:http'
import type { Socket } from 'node:net'

/** The way to the service through a proxy did not come about: nothing of the request has left. */
export class TunnelRefused extends Error {
  override name = 'TunnelRefused'
  /** `PROXY_` and why: an HTTP status, `TIMEOUT`, `CLOSED`, or the code of the fault on the way to it. */
  readonly code: string
  constructor(why: string, options?: ErrorOptions) {
    super('the proxy opened no way to the service', options)
    this.code = `PROXY_${why}`
  }
}

/**
 * Has a proxy open a connection to a host (CONNECT, RFC 9110, 9.3.6). What leaves on it the proxy hands on unread: TLS is
 * spoken with the service. undici's ProxyAgent does the same, and says what goes wrong in texts alone, waits for a proxy that hangs
 * as long as for an answer, and brings an agent of its own.
 *
 * @param proxy http://host:port, perhaps with a user name and a password
 * @param target host:port
 * @throws TunnelRefused
 */
export function openTunnel(proxy: string, target: string, timeoutMs: number): Promise<Socket> {
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

/** A proxy that closes without an answer resets, or hangs up. */
const whyOf = ({ code = 'CLOSED' }: NodeJS.ErrnoException): string => (code === 'ECONNRESET' ? 'CLOSED' : code)
