import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { areEqualSecrets } from '../clients.ts'
import { type Answer, refusalAnswer, sendAnswer } from '../endpoints/problemAnswer.ts'
import { isLoopbackAddress, isLoopbackName, stripIpv4Mapping } from '../gate/addresses.ts'
import { findForeignSiteText } from '../gate/gates.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for a route that answers every program on this host, without a token. */
    isOpen?: boolean
  }
}

interface ControlRequest {
  address: string
  localAddress: string
  headers: Record<string, string | string[] | undefined>
  isOpen: boolean
}

/**
 * Returns a refusal if a request may not use the control API.
 *
 * Without SANDBOX_CONTROL_TOKEN, only programs on this host may use the API. A loopback address is not enough, because
 * proxies, web pages and DNS rebinding also use one. With SANDBOX_CONTROL_TOKEN, every request needs the token, because
 * a proxy can look like a program.
 *
 * @see Fetch Metadata Request Headers (W3C), RFC 7239 (Forwarded), RFC 9110, 7.6.3 (Via)
 */
export function refuseControlRequest(request: ControlRequest, token: string | undefined): Answer | undefined {
  const isHere = isLoopbackAddress(request.address) || request.address === request.localAddress
  if (request.isOpen) return isHere ? undefined : refuse(`the request comes from ${request.address}`)
  const refusal = token === undefined ? refuseForeignRequest(request, isHere) : refuseWrongToken(request, token)
  return refusal ?? refuseOtherMediaType(request.headers)
}

function refuseWrongToken({ headers }: ControlRequest, token: string): Answer | undefined {
  const given = /^Bearer +(\S+) *$/i.exec(headers.authorization?.toString() ?? '')?.[1]
  if (given !== undefined && areEqualSecrets(given, token)) return undefined
  const detail = 'Send the token of SANDBOX_CONTROL_TOKEN: Authorization: Bearer TOKEN.'
  return refusalAnswer(401, detail, {}, { 'www-authenticate': 'Bearer realm="sandbox control"' })
}

function refuseForeignRequest({ address, localAddress, headers }: ControlRequest, isHere: boolean): Answer | undefined {
  if (!isHere) return refuse(`the request comes from ${address}`)
  const trace = Object.keys(headers).find((name) => isForwarding(name))
  if (trace !== undefined) return refuse(`the header ${trace} shows that a proxy sent the request`)
  if (!namesThisHost(headers.host?.toString() ?? '', localAddress))
    return refuse('the Host header does not name this host')
  const page = findForeignSiteText((name) => headers[name]?.toString())
  return page === undefined ? undefined : refuse(`a web page of ${page} sent the request`)
}

function refuse(why: string): Answer {
  const detail = `/_sandbox/ answers only programs on its own host, but ${why}. Send the request from that host to localhost, or start the sandbox with SANDBOX_CONTROL_TOKEN and send the token: Authorization: Bearer TOKEN.`
  return refusalAnswer(403, detail)
}

/** Requires JSON, because a page of another site cannot send JSON without a preflight request. */
function refuseOtherMediaType(headers: ControlRequest['headers']): Answer | undefined {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  if (!hasBody || /^application\/json\s*(;|$)/i.test(headers['content-type']?.toString() ?? '')) return undefined
  return refusalAnswer(415, 'Send JSON with Content-Type: application/json (curl: --json instead of -d).')
}

/** Ignores the port, because a tunnel may change it. False for `*.localhost`: some resolvers ask the network for it. */
function namesThisHost(host: string, localAddress: string): boolean {
  if (!/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return isLoopbackName(hostname) || hostname.replace(/^\[(.*)\]$/, '$1') === localAddress
}

function isForwarding(name: string): boolean {
  return /^(forwarded|via|proxy-connection|(x-forwarded|x-original-|x-envoy-|x-amzn-|cf-).*|.*-ip)$/.test(name)
}

export function createControlGuard(token: string | undefined): onRequestAsyncHookHandler {
  return async function guard({ socket, headers, routeOptions }: FastifyRequest, reply: FastifyReply) {
    const address = stripIpv4Mapping(socket.remoteAddress)
    const localAddress = stripIpv4Mapping(socket.localAddress)
    const refusal = refuseControlRequest(
      { address, localAddress, headers, isOpen: routeOptions.config.isOpen === true },
      token,
    )
    return refusal && sendAnswer(reply, refusal)
  }
}
