import { isIP } from 'node:net'
import { hostname as machineName } from 'node:os'

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
