import { isIP } from 'node:net'
import { hostname as machineName } from 'node:os'
import type { FastifyRequest } from 'fastify'
import { Refused } from '../errors.ts'

export interface Place {
  /** The value of --host. */
  host: string
  /** Further names in the address bar (CONSOLE_NAME), in lower case. */
  names: readonly string[]
  isProxy: (address: string) => boolean
}

const addressOf = ({ socket }: FastifyRequest) => socket.remoteAddress ?? ''

export const isFromProxy = (request: FastifyRequest, { isProxy }: Place): boolean => isProxy(addressOf(request))

/** @throws Refused if the Host is not ours: to the browser the page would belong to another site */
export function refuseForeignHost(request: FastifyRequest, place: Place): void {
  const name = nameInHost(request.headers.host)
  const isOurs =
    name !== null && (isFromProxy(request, place) || namesUs(name, request.socket.localAddress ?? '', place))
  if (!isOurs)
    throw new Refused(
      403,
      'The name in the address is not one of this console’s: ask for it as it said when it was started, or start it with CONSOLE_NAME set to this name.',
    )
}

/** Refuses forms of other sites' pages. Every current browser says whose page sends a form. @throws Refused */
export function refuseForeignForm(request: FastifyRequest, place: Place): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isOfHost = origin !== undefined && URL.canParse(origin) && new URL(origin).host === request.host.toLowerCase()
  // A proxy may ask under another name than the browser used: then only the browser's word counts.
  const isOurs = site === undefined ? isOfHost : site === 'same-origin' && (isOfHost || isFromProxy(request, place))
  if (!isOurs) throw new Refused(403, 'The page of another site sent this form. Nothing was changed.')
}

/** Lets a link on another site lead here, but no frame, picture or stream. @throws Refused */
export function refuseForeignUse({ headers }: FastifyRequest): void {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = headers
  if (site === undefined || site === 'same-origin' || site === 'none') return
  if (mode !== 'navigate' || dest !== 'document') throw new Refused(403, 'The page of another site asks for this.')
}

export function isLoopback(host: string): boolean {
  const name = bare(host)
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

/** The host without the brackets of IPv6. */
function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
}

/** The name in a Host header, without the port (a tunnel may change it); null if the header is not valid. */
export function nameInHost(header: string | undefined): string | null {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`)) return null
  return bare(new URL(`http://${header}`).hostname)
}

/**
 * Whether a Host names us: this machine, the address asked, the name of --host, or one of CONSOLE_NAME, compared as a
 * whole. So no other site can have a browser ask us under its own name (DNS rebinding).
 */
export function namesUs(
  name: string,
  localAddress: string,
  { host, names }: { host: string; names: readonly string[] },
): boolean {
  return (
    isLoopback(name) ||
    name === bare(host) ||
    names.includes(name) ||
    name === localAddress.replace(/^::ffff:/, '') ||
    (!isLoopback(host) && name === machineName().toLowerCase())
  )
}
