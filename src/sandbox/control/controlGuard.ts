import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { sameSecret } from '../clients.ts'
import { type Answer, refusalAnswer, sendAnswer } from '../endpoints/problemAnswer.ts'
import { isLoopbackAddress, isLoopbackName, unmapIpv4Address } from '../gate/addresses.ts'
import { findForeignPage } from '../gate/gates.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered without a token, to programs on this host. */
    isOpen?: boolean
  }
}

interface ControlRequest {
  address: string
  localAddress: string
  httpVersion: string
  /** A path, or an absolute URL. */
  target: string
  headers: IncomingHttpHeaders
  /** Number of Host headers; Node shows only the first. */
  hosts: number
  isOpen: boolean
}

const orToken = 'or start the sandbox with SANDBOX_CONTROL_TOKEN and send it: Authorization: Bearer TOKEN'

/**
 * Returns a refusal if a request may not use the control API.
 *
 * Without a token only programs on this host may. A loopback address does not prove that, because a proxy, a web page
 * and DNS rebinding also connect from there. With a token every request needs it, because a proxy can look like a
 * program.
 *
 * @see Fetch Metadata Request Headers (W3C), RFC 7239 (Forwarded), RFC 9110, 7.6.3 (Via)
 */
export function judgeControl(request: ControlRequest, token: string | undefined): Answer | undefined {
  if (request.isOpen) return isOfThisHost(request) ? undefined : fromElsewhere(request.address)
  const stranger = token === undefined ? judgeStranger(request) : judgeToken(request.headers.authorization, token)
  return stranger ?? judgeMediaType(request.headers)
}

function judgeToken(authorization: string | undefined, token: string): Answer | undefined {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  if (given !== undefined && sameSecret(given, token)) return undefined
  const detail = 'Send the token of SANDBOX_CONTROL_TOKEN: Authorization: Bearer TOKEN.'
  return refusalAnswer(401, detail, {}, { 'www-authenticate': 'Bearer realm="sandbox control"' })
}

function judgeStranger(request: ControlRequest): Answer | undefined {
  const { address, localAddress, httpVersion, headers, target, hosts } = request
  if (!isOfThisHost(request)) return fromElsewhere(address)
  const trace = Object.keys(headers).find((name) => isForwarding(name))
  if (trace !== undefined) {
    return refusalAnswer(
      403,
      `The header ${trace} shows that a proxy sent this. Send it from this host without the proxy, ${orToken}.`,
    )
  }
  if (httpVersion === '1.0') {
    return refusalAnswer(403, `HTTP/1.0 is probably from a proxy. Use HTTP/1.1 from this host, ${orToken}.`)
  }
  const { host = '' } = headers
  if (hosts > 1) return refusalAnswer(403, `The request has ${hosts} Host headers. Send one, ${orToken}.`)
  if (!namesThisHost(host, localAddress) || !isForThisHost(target, localAddress)) {
    return refusalAnswer(403, `The Host is not this machine. Use localhost or its address, ${orToken}.`)
  }
  const page = findForeignPage(headerOf(headers))
  return page === undefined ? undefined : fromPage(page)
}

function headerOf(headers: IncomingHttpHeaders) {
  return (name: string) => headers[name]?.toString()
}

function fromPage(page: string): Answer {
  return refusalAnswer(
    403,
    `A web page of ${page} sent this, which is not allowed. Send it from a program, ${orToken}.`,
  )
}

function fromElsewhere(address: string): Answer {
  return refusalAnswer(
    403,
    `/_sandbox/ answers only programs on its own host, and this comes from ${address}. Send it from there, ${orToken}.`,
  )
}

/** Requires JSON, because pages of other sites can send only forms and text without a preflight request. */
function judgeMediaType(headers: IncomingHttpHeaders): Answer | undefined {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  if (!hasBody || /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) return undefined
  return refusalAnswer(415, 'Send JSON with Content-Type: application/json (curl: --json instead of -d).')
}

function isOfThisHost({ address, localAddress }: ControlRequest): boolean {
  return isLoopbackAddress(address) || address === localAddress
}

/** Ignores the port, which a tunnel may change. Refuses `*.localhost`, which some resolvers ask the network for. */
function namesThisHost(host: string, localAddress: string): boolean {
  if (!/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return isLoopbackName(hostname) || hostname.replace(/^\[(.*)\]$/, '$1') === localAddress
}

/** An absolute target overrides the Host (RFC 9112, 3.2.2). */
function isForThisHost(target: string, localAddress: string): boolean {
  if (target.startsWith('/')) return true
  const authority = /^http:\/\/([^/?#]*)/i.exec(target)?.[1]
  return authority !== undefined && namesThisHost(authority, localAddress)
}

function isForwarding(name: string): boolean {
  return /^(forwarded|via|proxy-connection|(x-forwarded|x-original-|x-envoy-|x-amzn-|cf-).*|.*-ip)$/.test(name)
}

export function guardControl(token: string | undefined): onRequestAsyncHookHandler {
  return async function guard(request: FastifyRequest, reply: FastifyReply) {
    const refusal = judgeControl(factsOf(request), token)
    return refusal && sendAnswer(reply, refusal)
  }
}

function factsOf({ socket, raw, headers, routeOptions }: FastifyRequest): ControlRequest {
  return {
    address: unmapIpv4Address(socket.remoteAddress),
    localAddress: unmapIpv4Address(socket.localAddress),
    httpVersion: raw.httpVersion,
    target: raw.url ?? '',
    headers,
    hosts: raw.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length,
    isOpen: routeOptions.config.isOpen === true,
  }
}
