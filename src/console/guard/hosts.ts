import { isIP } from 'node:net'

/** Whether an address is this very machine's own, which nobody else can ask. */
export function isLoopback(host: string): boolean {
  const name = bare(host)
  return (
    name === 'localhost' ||
    name === '::1' ||
    name === '::ffff:127.0.0.1' ||
    (isIP(name) === 4 && name.startsWith('127.'))
  )
}

/** A host without the brackets of IPv6. */
export function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
}

/** The name in a Host header, whatever the port, which a tunnel may have changed; null where it is none. */
export function hostname(header: string | undefined): string | null {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`)) return null
  return bare(new URL(`http://${header}`).hostname)
}
