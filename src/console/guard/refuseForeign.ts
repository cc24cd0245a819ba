import { isIP } from 'node:net'
import { hostname as machineName } from 'node:os'
import type { FastifyRequest } from 'fastify'
import { Refused } from '../errors.ts'

/** Where the console is. */
export interface Place {
  /** As it was told to listen. */
  host: string
  /** Further names under which browsers ask for it (CONSOLE_NAME), in lower case. */
  names: readonly string[]
  isProxy: (address: string) => boolean
}

const addressOf = ({ socket }: FastifyRequest) => socket.remoteAddress ?? ''

/** Whether it is the proxy that asks, which knows its own names. */
export const isFromProxy = (request: FastifyRequest, { isProxy }: Place): boolean => isProxy(addressOf(request))

/** @throws Refused where the Host is not ours: the page would be another site's to the browser */
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

/**
 * A browser says whose page sends a form. Who says nothing is no browser of today, and has no page of ours.
 *
 * @throws Refused where it is not ours
 */
export function refuseForeignForm(request: FastifyRequest, place: Place): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isOfHost = origin !== undefined && URL.canParse(origin) && new URL(origin).host === request.host.toLowerCase()
  // A proxy may ask us under another name than the browser asked it: then the browser's word counts alone.
  const isOurs = site === undefined ? isOfHost : site === 'same-origin' && (isOfHost || isFromProxy(request, place))
  if (!isOurs) throw new Refused(403, 'The page of another site sent this form. Nothing was changed.')
}

/**
 * A link on another site's page may lead here. Nothing else of ours is for it: no frame, no picture, no stream.
 *
 * @throws Refused where that is what it asks for
 */
export function refuseForeignUse({ headers }: FastifyRequest): void {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = headers
  if (site === undefined || site === 'same-origin' || site === 'none') return
  if (mode !== 'navigate' || dest !== 'document') throw new Refused(403, 'The page of another site asks for this.')
}

/** Whether an address or name leads to this very machine, which nobody else can ask by it. */
export function isLoopback(host: string): boolean {
  const name = bare(host)
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

/** A host without the brackets of IPv6. */
function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
}

/** The name in a Host header, whatever the port, which a tunnel may have changed; null where it is none. */
export function nameInHost(header: string | undefined): string | null {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`)) return null
  return bare(new URL(`http://${header}`).hostname)
}

/**
 * Whether a Host names us, so that no other site's page can have the browser ask us under a name of its own (DNS rebinding): this
 * machine, the address that was asked, the name that --host gave, or one of CONSOLE_NAME. Each name is compared as a whole.
 *
 * @param names in lower case
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
