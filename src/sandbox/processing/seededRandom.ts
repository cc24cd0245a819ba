import { createHash, createHmac, createPrivateKey } from 'node:crypto'
import type { JWK } from 'jose'

const anySeed = 1

/** Random values drawn. `stored` counts over restarts, the other counts since the last start. */
type Counts = Record<'stored' | 'token' | 'wrong id' | 'fault', number>

export interface SeededRandom {
  nextPosition(client: string): number
  /** @param client null for all clients */
  restart(client: string | null): void
  fraction(stream: 'time' | 'time again' | 'failure', client: string, position: number): number
  faultFraction(client: string): number
  id(of: 'transaction' | 'order' | 'event', client: string, position: number): string
  tokenId(client: string): string
  wrongId(client: string): string
}

/**
 * All randomness of the sandbox. With a seed, the n-th record of a client has the same id and processing time in every
 * run, independent of other clients.
 */
export function createSeededRandom(
  seed: () => number | null,
  nextPositions: ReadonlyMap<string, number>,
): SeededRandom {
  const counts = new Map<string, Counts>()
  const countsOf = (client: string): Counts => {
    const found = counts.get(client) ?? { stored: 0, token: 0, 'wrong id': 0, fault: 0 }
    counts.set(client, found)
    return found
  }
  for (const [client, position] of nextPositions) countsOf(client).stored = position
  const fraction = (stream: string, n: number) => drawFraction(seed() ?? anySeed, stream, n)
  const uuid = (stream: string, n: number): string => {
    const current = seed()
    if (current === null) return crypto.randomUUID()
    const hex = drawBytes(current, stream, n).toString('hex')
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5')
  }
  return {
    nextPosition: (client) => countsOf(client).stored++,
    restart(client) {
      if (client === null) counts.clear()
      else counts.delete(client)
    },
    fraction: (stream, client, position) => fraction(`${stream} ${client}`, position),
    faultFraction: (client) => fraction(`fault ${client}`, countsOf(client).fault++),
    id: (of, client, position) => uuid(`${of} ${client}`, position),
    tokenId: (client) => uuid(`token ${client}`, countsOf(client).token++),
    wrongId: (client) => uuid(`wrong id ${client}`, countsOf(client)['wrong id']++),
  }
}

/** Header of a private Ed25519 key (RFC 8410). */
const pkcs8Header = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Derives the key from the client secrets, too, because the seed is public. */
export function deriveSigningKey(seed: number, secrets: readonly string[]): JWK {
  const bytes = createHmac('sha256', JSON.stringify(secrets)).update(`outboxd sandbox signing key ${seed}`).digest()
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Header, bytes]), format: 'der', type: 'pkcs8' })
  return key.export({ format: 'jwk' })
}

export function drawFraction(seed: number, stream: string, n: number): number {
  return drawBytes(seed, stream, n).readUIntBE(0, 6) / 2 ** 48
}

/** Depends only on the arguments, so that a restart changes nothing. */
function drawBytes(seed: number, stream: string, n: number): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([seed, stream, n]))
    .digest()
}
