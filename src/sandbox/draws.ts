import { createHmac, createPrivateKey } from 'node:crypto'
import type { JWK } from 'jose'
import { draw, drawUuid } from './seededDraw.ts'

/** What is drawn by position is drawn of this where no seed is given. */
const anySeed = 1

/**
 * What the sandbox leaves to chance.
 *
 * With a seed, ids come of it as well as processing times: what was stored `n`-th has the same in every run, and a sandbox that
 * starts again goes on where it was.
 */
export class Draws {
  readonly #seed: () => number | null
  #position: number
  #tokens = 0
  #faults = 0
  #wrongIds = 0

  /** @param position the first that is free: see nextPosition() */
  constructor(seed: () => number | null, position: number) {
    this.#seed = seed
    this.#position = position
  }

  /** The position of something that is about to be stored. */
  next(): number {
    return this.#position++
  }

  startAnew(): void {
    this.#position = 0
    this.#tokens = 0
    this.#faults = 0
    this.#wrongIds = 0
  }

  /** At least 0 and below 1. */
  share(stream: 'time' | 'time again' | 'failure', position: number): number {
    return draw(this.#seed() ?? anySeed, stream, position)
  }

  /** Whether a fault for a share of the requests takes the next one. */
  fault(): number {
    return draw(this.#seed() ?? anySeed, 'fault', ++this.#faults)
  }

  id(of: 'transaction' | 'order' | 'event', position: number): string {
    return this.#uuid(of, position)
  }

  tokenId(): string {
    return this.#uuid('token', this.#tokens++)
  }

  wrongId(): string {
    return this.#uuid('wrong id', this.#wrongIds++)
  }

  #uuid(stream: string, n: number): string {
    const seed = this.#seed()
    return seed === null ? crypto.randomUUID() : drawUuid(seed, stream, n)
  }
}

/** RFC 8410: what stands before the 32 bytes of a private Ed25519 key. */
const pkcs8Header = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The key that signs tokens, of the seed. Of the secret too, or whoever knows the seed could make tokens. */
export function seededKey(seed: number, clientSecret: string): JWK {
  const bytes = createHmac('sha256', clientSecret).update(`outboxd sandbox signing key ${seed}`).digest()
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Header, bytes]), format: 'der', type: 'pkcs8' })
  return key.export({ format: 'jwk' })
}
