/** Whether an address is one that only this machine reaches. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address)
}

/** Whether a host to listen on or to ask for is loopback, by address or by its one name. */
export function isLoopbackName(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopbackAddress(host.replace(/^\[(.*)\]$/, '$1'))
}

/** The URL under which this machine reaches what listens on `host`: nobody can ask for the address that means all. */
export function reachableUrl(host: string, port: number): string {
  const name = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** Whether to listen on `host` is to listen on every interface. */
export function isEveryInterface(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
