import { createHash, createHmac, createPrivateKey } from 'node:crypto'
import type { JWK } from 'jose'

const anySeed = 1

/** How many values were drawn for a client. `stored` counts over restarts, the others since the process started. */
type Counts = Record<'stored' | 'token' | 'wrong id' | 'fault', number>

/**
 * All randomness of the sandbox. With a seed, the n-th record of a client has the same id and time in every run,
 * independent of other clients.
 */
export class SeededRandom {
  readonly #seed: () => number | null
  readonly #clients = new Map<string, Counts>()

  constructor(seed: () => number | null, positions: ReadonlyMap<string, number>) {
    this.#seed = seed
    for (const [client, stored] of positions) this.#of(client).stored = stored
  }

  next(client: string): number {
    return this.#of(client).stored++
  }

  restart(client: string | null): void {
    if (client === null) this.#clients.clear()
    else this.#clients.delete(client)
  }

  fraction(stream: 'time' | 'time again' | 'failure', client: string, position: number): number {
    return drawFraction(this.#seed() ?? anySeed, `${stream} ${client}`, position)
  }

  fault(client: string): number {
    return drawFraction(this.#seed() ?? anySeed, `fault ${client}`, this.#of(client).fault++)
  }

  id(of: 'transaction' | 'order' | 'event', client: string, position: number): string {
    return this.#uuid(`${of} ${client}`, position)
  }

  tokenId(client: string): string {
    return this.#uuid(`token ${client}`, this.#of(client).token++)
  }

  wrongId(client: string): string {
    return this.#uuid(`wrong id ${client}`, this.#of(client)['wrong id']++)
  }

  #of(client: string): Counts {
    const counts = this.#clients.get(client) ?? { stored: 0, token: 0, 'wrong id': 0, fault: 0 }
    this.#clients.set(client, counts)
    return counts
  }

  #uuid(stream: string, n: number): string {
    const seed = this.#seed()
    if (seed === null) return crypto.randomUUID()
    const hex = drawBytes(seed, stream, n).toString('hex')
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5')
  }
}

/** Header of a private Ed25519 key (RFC 8410). */
const pkcs8Header = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Derives the key from the seed and the client secrets, because the seed is public. */
export function deriveSigningKey(seed: number, secrets: readonly string[]): JWK {
  const bytes = createHmac('sha256', JSON.stringify(secrets)).update(`outboxd sandbox signing key ${seed}`).digest()
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Header, bytes]), format: 'der', type: 'pkcs8' })
  return key.export({ format: 'jwk' })
}

/** The n-th number from [0, 1) of a seeded stream. */
export function drawFraction(seed: number, stream: string, n: number): number {
  return drawBytes(seed, stream, n).readUIntBE(0, 6) / 2 ** 48
}

/** Depends only on its arguments, so that a restart changes nothing. */
function drawBytes(seed: number, stream: string, n: number): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([seed, stream, n]))
    .digest()
}
