/** IPv4 as people write it, also where it came in through an IPv6 socket. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/, '')
}
