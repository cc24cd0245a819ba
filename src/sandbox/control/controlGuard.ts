import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { areEqualSecrets } from '../clients.ts'
import { type Answer, refusalAnswer, sendAnswer } from '../endpoints/problemAnswer.ts'
import { isLoopbackAddress, isLoopbackName, stripIpv4Mapping } from '../gate/addresses.ts'
import { findForeignPageOrigin } from '../gate/gates.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered without a token, to programs on this host. */
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
 * Without a token only programs on this host may. A loopback address does not prove that, because a proxy, a web page
 * and DNS rebinding also connect from there. With a token every request needs it, because a proxy can look like a
 * program.
 *
 * @see Fetch Metadata Request Headers (W3C), RFC 7239 (Forwarded), RFC 9110, 7.6.3 (Via)
 */
export function refuseControlRequest(request: ControlRequest, token: string | undefined): Answer | undefined {
  const isHere = isLoopbackAddress(request.address) || request.address === request.localAddress
  if (request.isOpen) return isHere ? undefined : refuse(`this comes from ${request.address}`)
  const refusal = token === undefined ? judgeStranger(request, isHere) : judgeToken(request, token)
  return refusal ?? judgeMediaType(request.headers)
}

function judgeToken({ headers }: ControlRequest, token: string): Answer | undefined {
  const given = /^Bearer +(\S+) *$/i.exec(headers.authorization?.toString() ?? '')?.[1]
  if (given !== undefined && areEqualSecrets(given, token)) return undefined
  const detail = 'Send the token of SANDBOX_CONTROL_TOKEN: Authorization: Bearer TOKEN.'
  return refusalAnswer(401, detail, {}, { 'www-authenticate': 'Bearer realm="sandbox control"' })
}

function judgeStranger({ address, localAddress, headers }: ControlRequest, isHere: boolean): Answer | undefined {
  if (!isHere) return refuse(`this comes from ${address}`)
  const trace = Object.keys(headers).find((name) => isForwarding(name))
  if (trace !== undefined) return refuse(`the header ${trace} shows that a proxy sent this`)
  if (!namesThisHost(headers.host?.toString() ?? '', localAddress)) return refuse('the Host is not this machine')
  const page = findForeignPageOrigin((name) => headers[name]?.toString())
  return page === undefined ? undefined : refuse(`a web page of ${page} sent this`)
}

function refuse(why: string): Answer {
  const detail = `/_sandbox/ answers only programs on its own host, and ${why}. Send it from there to localhost, or start the sandbox with SANDBOX_CONTROL_TOKEN and send it: Authorization: Bearer TOKEN.`
  return refusalAnswer(403, detail)
}

/** Requires JSON, because pages of other sites can send only forms and text without a preflight request. */
function judgeMediaType(headers: ControlRequest['headers']): Answer | undefined {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  if (!hasBody || /^application\/json\s*(;|$)/i.test(headers['content-type']?.toString() ?? '')) return undefined
  return refusalAnswer(415, 'Send JSON with Content-Type: application/json (curl: --json instead of -d).')
}

/** Ignores the port, which a tunnel may change. Refuses `*.localhost`, which some resolvers ask the network for. */
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
