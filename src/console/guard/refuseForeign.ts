import { isIP } from 'node:net'
import { hostname as machineName } from 'node:os'
import type { FastifyRequest } from 'fastify'
import { RequestRefused } from '../errors.ts'

export interface ConsoleHosts {
  host: string
  /** Further host names of the console (CONSOLE_NAME), in lower case. */
  names: readonly string[]
  isProxy: (address: string) => boolean
}

const addressOf = ({ socket }: FastifyRequest) => socket.remoteAddress ?? ''

export const isFromProxy = (request: FastifyRequest, { isProxy }: ConsoleHosts): boolean => isProxy(addressOf(request))

/** Prevents DNS rebinding. @throws RequestRefused if the Host header does not name this console */
export function refuseForeignHost(request: FastifyRequest, hosts: ConsoleHosts): void {
  const name = nameInHost(request.headers.host)
  const isOurs =
    name !== null &&
    (isFromProxy(request, hosts) || isNameOfThisConsole(name, request.socket.localAddress ?? '', hosts))
  if (!isOurs)
    throw new RequestRefused(
      403,
      'This console does not answer under this name. Use the address that it printed at its start, or set CONSOLE_NAME to this name.',
    )
}

/**
 * A form needs no token, because each browser says where a form comes from, and a form that does not say so is refused.
 * @throws RequestRefused if, by Origin and Sec-Fetch-Site, a page of the console did not send the form
 */
export function refuseForeignForm(request: FastifyRequest, hosts: ConsoleHosts): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isOfHost = origin !== undefined && URL.canParse(origin) && new URL(origin).host === request.host.toLowerCase()
  // Through a proxy, Sec-Fetch-Site is enough, because the proxy may have changed the Host.
  const isOurs = site === undefined ? isOfHost : site === 'same-origin' && (isOfHost || isFromProxy(request, hosts))
  if (!isOurs) throw new RequestRefused(403, 'A page of another site sent this form. Nothing was changed.')
}

/** @throws RequestRefused if another site's page embeds the console as frame, picture or stream; a link is allowed */
export function refuseForeignEmbedding({ headers }: FastifyRequest): void {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = headers
  if (site === undefined || site === 'same-origin' || site === 'none') return
  if (mode !== 'navigate' || dest !== 'document')
    throw new RequestRefused(403, 'A page of another site requested this.')
}

export function isLoopback(host: string): boolean {
  const name = bare(host)
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
}

/** Returns the name in a Host header without the port, which a tunnel may change; null if invalid. */
function nameInHost(header: string | undefined): string | null {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`)) return null
  return bare(new URL(`http://${header}`).hostname)
}

export function isNameOfThisConsole(
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
