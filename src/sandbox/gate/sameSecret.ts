import { createHash, timingSafeEqual } from 'node:crypto'

/** Compares two secrets and takes the same time wherever they differ. */
export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
