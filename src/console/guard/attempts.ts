import { isIPv6 } from 'node:net'
import type { Clock } from '../../clock.ts'
import { BoundedMap } from '../bounds.ts'

/** Wrong passwords allowed: a burst of `max`, then one per `everyMs`. */
interface Allowance {
  max: number
  everyMs: number
}

const perAddress: Allowance = { max: 5, everyMs: 60_000 }
const ofAllAddresses: Allowance = { max: 30, everyMs: 2_000 }

/** If there are more buckets, the oldest is dropped. `ofAllAddresses` still bounds the tries. */
const bucketsMax = 10_000

interface Bucket {
  allowance: Allowance
  left: number
  atMs: number
}

/**
 * Bounds password tries per address and of all addresses. A browser that signed in before has separate tries (OWASP's
 * device cookies), so that others cannot lock the browser out.
 */
export interface LoginAttemptLimit {
  /**
   * @param device the cookie of a browser that signed in before
   * @returns milliseconds to wait; 0 if the try may be made
   */
  takeOrWaitMs(address: string, device?: string | null): number
  giveBack(address: string, device?: string | null): void
}

export function createLoginAttemptLimit(clock: Pick<Clock, 'stopwatch'>): LoginAttemptLimit {
  const elapsedMs = clock.stopwatch()
  const buckets = new BoundedMap<string, Bucket>(bucketsMax)
  const together: Bucket = { allowance: ofAllAddresses, left: ofAllAddresses.max, atMs: 0 }

  function bucketOf(name: string): Bucket {
    const bucket = buckets.get(name) ?? { allowance: perAddress, left: perAddress.max, atMs: elapsedMs() }
    buckets.set(name, bucket)
    return bucket
  }

  const bucketsOf = (address: string, device: string | null) =>
    device === null ? [bucketOf(netOf(address)), together] : [bucketOf(`device ${device}`)]

  return {
    takeOrWaitMs(address, device = null) {
      const all = bucketsOf(address, device)
      for (const bucket of all) refill(bucket, elapsedMs())
      const empty = all.find(({ left }) => left < 1)
      if (empty !== undefined) return Math.ceil((1 - empty.left) * empty.allowance.everyMs)
      for (const bucket of all) bucket.left -= 1
      return 0
    },
    giveBack(address, device = null) {
      for (const bucket of bucketsOf(address, device)) bucket.left = Math.min(bucket.allowance.max, bucket.left + 1)
    },
  }
}

function refill(bucket: Bucket, nowMs: number): void {
  const { max, everyMs } = bucket.allowance
  bucket.left = Math.min(max, bucket.left + (nowMs - bucket.atMs) / everyMs)
  bucket.atMs = nowMs
}

/** Returns the first 64 bits of an IPv6 address, because one owner has all addresses of that net. */
function netOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = tail === undefined ? 0 : 8 - first.length - last.length
  return [...first, ...Array<string>(missing).fill('0'), ...last].slice(0, 4).join(':')
}
