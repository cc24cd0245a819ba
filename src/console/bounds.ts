import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestRefused } from './errors.ts'
import { type ConsoleParts, shareRecentRead } from './parts.ts'

/** Drops the entry that was set longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number

  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    const [oldest] = this.keys()
    if (this.size > this.#max && oldest !== undefined) this.delete(oldest)
    return this
  }
}

export interface ConcurrencyLimit {
  /** Counts a request until the result is disposed. @throws RequestRefused if `max` requests are under way */
  begin(): Disposable
}

export function createConcurrencyLimit(max: number): ConcurrencyLimit {
  let count = 0
  return {
    begin() {
      if (count === max) throw new RequestRefused(429, 'Too many requests are under way. Try again in a moment.')
      count++
      return { [Symbol.dispose]: () => void count-- }
    },
  }
}

const versionAgeMs = 2_000
const versionsMax = 1_000

/** Adds the address that a live page polls. All who look at a page share its version for 2 s. */
export function addVersionRoute(
  app: FastifyInstance,
  path: string,
  { clock }: ConsoleParts,
  read: (request: Pick<FastifyRequest, 'query' | 'params'>) => Promise<string | undefined>,
): void {
  const readings = new BoundedMap<string, () => Promise<string | undefined>>(versionsMax)
  app.get(path, { config: { isPolled: true } }, async ({ url, query, params }) => {
    const reading = readings.get(url) ?? shareRecentRead(clock, versionAgeMs, () => read({ query, params }))
    readings.set(url, reading)
    return { version: await reading() }
  })
}
