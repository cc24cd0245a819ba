/** An answer that says how much of the limit remains, or a request that counted without saying so. */
export interface Observation {
  /** When the service may have counted it: between the request and its answer. */
  fromMs: number
  toMs: number
  /** Null where it was not said. */
  remaining: number | null
}

export type WindowKind = 'sliding' | 'fixed'

/** A window that explains every answer. */
export interface WindowFit {
  kind: WindowKind
  windowMs: number
  /** The limits that it would have. */
  limit: { least: number; most: number }
}

const phases = 120
const freedMin = 2

/**
 * The windows, among those of these lengths, under which what remained and what had been used add up to one limit at each answer.
 * One under which nothing had been freed yet explains nothing, and is none. Pure.
 *
 * @param seen in their order; each counted once
 */
export function fitWindows(seen: readonly Observation[], windowsMs: readonly number[]): WindowFit[] {
  return windowsMs.flatMap((windowMs) => [sliding(seen, windowMs), fixed(seen, windowMs)].filter((fit) => fit !== null))
}

interface Used {
  least: number
  most: number
}

function sliding(seen: readonly Observation[], windowMs: number): WindowFit | null {
  const used = seen.map(({ fromMs, toMs }, i): Used => {
    const before = seen.slice(0, i + 1)
    return {
      least: before.filter((each) => each.fromMs > toMs - windowMs).length,
      most: before.filter((each) => each.toMs > fromMs - windowMs).length,
    }
  })
  return fitOf('sliding', windowMs, seen, used)
}

/** The boundaries may lie anywhere: every phase is tried, and the limits of those that fit are put together. */
function fixed(seen: readonly Observation[], windowMs: number): WindowFit | null {
  const fits = Array.from({ length: phases }, (_, phase) => {
    const startMs = (phase / phases) * windowMs
    const windowOf = (ms: number) => Math.floor((ms - startMs) / windowMs)
    const used = seen.map(({ fromMs, toMs }, i): Used => {
      const before = seen.slice(0, i + 1)
      const [early, late] = [windowOf(fromMs), windowOf(toMs)]
      return {
        least: before.filter((each) => windowOf(each.fromMs) === late && early === late).length || 1,
        most: before.filter((each) => windowOf(each.toMs) >= early).length,
      }
    })
    return fitOf('fixed', windowMs, seen, used)
  }).filter((fit) => fit !== null)
  const limits = fits.map(({ limit }) => limit)
  if (limits.length === 0) return null
  const limit = {
    least: Math.min(...limits.map(({ least }) => least)),
    most: Math.max(...limits.map(({ most }) => most)),
  }
  return { kind: 'fixed', windowMs, limit }
}

function fitOf(
  kind: WindowKind,
  windowMs: number,
  seen: readonly Observation[],
  used: readonly Used[],
): WindowFit | null {
  let limit = { least: 0, most: Number.POSITIVE_INFINITY }
  let freed = 0
  for (const [i, { remaining }] of seen.entries()) {
    const { least, most } = used[i] ?? { least: 0, most: 0 }
    freed = Math.max(freed, i + 1 - most)
    if (remaining === null) continue
    limit = { least: Math.max(limit.least, remaining + least), most: Math.min(limit.most, remaining + most) }
  }
  return freed >= freedMin && limit.least <= limit.most ? { kind, windowMs, limit } : null
}
