import { BlockList, isIP } from 'node:net'

export function isAddressOrNetwork(text: string): boolean {
  return readEntry(text) !== undefined
}

export function isListedAddress(address: string, allowList: readonly string[]): boolean {
  const { plain, family } = readAddress(address)
  const list = new BlockList()
  for (const entry of allowList.flatMap((text) => readEntry(text) ?? []))
    list.addSubnet(entry.plain, entry.prefix, entry.family)
  return family !== undefined && list.check(plain, family)
}

type Family = 'ipv4' | 'ipv6'
const bits = { ipv4: 32, ipv6: 128 }

function readEntry(text: string): { plain: string; prefix: number; family: Family } | undefined {
  const [, address = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const { plain, family } = readAddress(address)
  if (family === undefined) return undefined
  const prefix = Number(length ?? bits[family])
  return prefix <= bits[family] ? { plain, prefix, family } : undefined
}

function readAddress(address: string): { plain: string; family: Family | undefined } {
  const plain = stripIpv4Mapping(address).replace(/%.*$/, '')
  return { plain, family: familyOf(plain) }
}

function familyOf(address: string): Family | undefined {
  const version = isIP(address)
  if (version === 4) return 'ipv4'
  return version === 6 ? 'ipv6' : undefined
}

export function stripIpv4Mapping(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/, '')
}

export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address)
}

export function isLoopbackName(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopbackAddress(host.replace(/^\[(.*)\]$/, '$1'))
}

export function toReachableUrl(host: string, port: number): string {
  const name = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

export function isWildcardAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
