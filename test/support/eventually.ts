import { vi } from 'vitest'

/** Looks again and again until what `look` expects holds. The bound is for machines that are busy: it ends no good wait. */
export function eventually(look: () => Promise<void> | void, mostMs = 60_000): Promise<void> {
  return vi.waitFor(look, { timeout: mostMs, interval: 25 })
}
