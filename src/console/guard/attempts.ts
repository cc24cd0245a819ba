import { isIPv6 } from 'node:net'
import type { Clock } from '../../clock.ts'

/** Wrong passwords allowed: a burst of `most`, then one per `everyMs`. A browser that has signed in before has as many as an address. */
const perAddress = { most: 5, everyMs: 60_000 }
const ofAll = { most: 30, everyMs: 2_000 }

/** Whoever has more addresses than this is bounded by what all have together. */
const addressesMax = 10_000

/** How many tries of a password an address has, and all together, and a browser that has signed in before (OWASP's device cookies). */
export interface Attempts {
  /**
   * Takes one.
   *
   * @param device a browser that has signed in before, by its cookie: it has tries of its own, and no others count
   * @returns how long to wait before the next if none is left; 0: go ahead
   */
  take(address: string, device?: string | null): number
  /** The password was right: what was taken is given back, and this address no longer depends on what strangers do. */
  succeeded(address: string, device?: string | null): void
}

interface Bucket {
  left: number
  atMs: number
}

/**
 * Bounds the tries of a password. Work on passwords is bounded by the same: whoever has no try left costs nothing.
 *
 * Strangers who use up what all have together keep nobody out who has signed in from an address before.
 */
export function createAttempts(clock: Clock): Attempts {
  const elapsedMs = clock.stopwatch()
  const buckets = new Map<string, Bucket>()
  const known = new Set<string>()
  const together: Bucket = { left: ofAll.most, atMs: 0 }

  function bucketOf(address: string): Bucket {
    const bucket = buckets.get(address) ?? { left: perAddress.most, atMs: elapsedMs() }
    buckets.delete(address)
    buckets.set(address, bucket)
    for (const oldest of buckets.keys()) {
      if (buckets.size <= addressesMax) break
      buckets.delete(oldest)
    }
    return bucket
  }

  return {
    take(given, device = null) {
      if (device !== null) {
        const own = bucketOf(`device ${device}`)
        refill(own, perAddress, elapsedMs())
        if (own.left < 1) return waitMs(own, perAddress)
        own.left -= 1
        return 0
      }
      const address = netOf(given)
      const own = bucketOf(address)
      refill(own, perAddress, elapsedMs())
      refill(together, ofAll, elapsedMs())
      if (own.left < 1) return waitMs(own, perAddress)
      if (!known.has(address)) {
        if (together.left < 1) return waitMs(together, ofAll)
        together.left -= 1
      }
      own.left -= 1
      return 0
    },
    succeeded(given, device = null) {
      if (device !== null) {
        buckets.delete(`device ${device}`)
        return
      }
      const address = netOf(given)
      const own = bucketOf(address)
      own.left = Math.min(perAddress.most, own.left + 1)
      if (!known.has(address)) together.left = Math.min(ofAll.most, together.left + 1)
      if (known.size < addressesMax) known.add(address)
    },
  }
}

function refill(bucket: Bucket, { most, everyMs }: typeof perAddress, nowMs: number): void {
  bucket.left = Math.min(most, bucket.left + (nowMs - bucket.atMs) / everyMs)
  bucket.atMs = nowMs
}

function waitMs({ left }: Bucket, { everyMs }: typeof perAddress): number {
  return Math.ceil((1 - left) * everyMs)
}

/** Who has one address of IPv6 has 2^64 of them. */
function netOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = tail === undefined ? 0 : 8 - first.length - last.length
  return [...first, ...Array<string>(missing).fill('0'), ...last].slice(0, 4).join(':')
}
