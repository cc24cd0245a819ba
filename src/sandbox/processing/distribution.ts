/** How long the sandbox takes to process what it accepted; all times in seconds. */
export type Distribution =
  | { kind: 'constant'; seconds: number; spread: number }
  | { kind: 'lognormal'; median: number; sigma: number }
  | { kind: 'humps'; firstShare: number; first: Range; second: Range }
  | { kind: 'exponential'; mean: number }

export interface Range {
  from: number
  to: number
}

/** A day: nothing takes longer, whatever is drawn. */
const secondsMax = 86_400

export const distributionForms =
  'constant:SECONDS[:SPREAD], lognormal:MEDIAN:SIGMA, humps:SHARE:FROM-TO:FROM-TO or exponential:MEAN'

/** Reads text such as `lognormal:20:0.6`; undefined if it has none of the `distributionForms`. */
export function parseDistribution(text: string): Distribution | undefined {
  const [kind, ...rest] = text.split(':')
  switch (kind) {
    case 'constant': {
      const [seconds, spread = 0] = rest.map(quantity)
      return rest.length <= 2 && isSet(seconds) && isShare(spread) ? { kind, seconds, spread } : undefined
    }
    case 'lognormal': {
      const [median, sigma] = rest.map(quantity)
      return rest.length === 2 && isSet(median) && isSet(sigma) ? { kind, median, sigma } : undefined
    }
    case 'humps': {
      const firstShare = quantity(rest[0])
      const [first, second] = rest.slice(1).map(range)
      return rest.length === 3 && isShare(firstShare) && first && second
        ? { kind, firstShare, first, second }
        : undefined
    }
    case 'exponential': {
      const mean = quantity(rest[0])
      return rest.length === 1 && isSet(mean) ? { kind, mean } : undefined
    }
    default:
      return undefined
  }
}

/**
 * One processing time in seconds, between 0 and a day.
 *
 * @param random two independent draws, each at least 0 and below 1
 */
export function processingSeconds(distribution: Distribution, random: readonly [number, number]): number {
  return Math.min(secondsMax, Math.max(0, drawn(distribution, random)))
}

function drawn(distribution: Distribution, [a, b]: readonly [number, number]): number {
  switch (distribution.kind) {
    case 'constant':
      return distribution.seconds * (1 + distribution.spread * (2 * a - 1))
    case 'lognormal':
      return distribution.median * Math.exp(distribution.sigma * normal(a, b))
    case 'humps':
      return a < distribution.firstShare ? within(distribution.first, b) : within(distribution.second, b)
    case 'exponential':
      return -distribution.mean * Math.log(1 - a)
    default:
      return distribution satisfies never
  }
}

/** Box and Muller: two even draws make a normal one. */
function normal(a: number, b: number): number {
  return Math.sqrt(-2 * Math.log(1 - a)) * Math.cos(2 * Math.PI * b)
}

function within({ from, to }: Range, share: number): number {
  return from + (to - from) * share
}

function quantity(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
}

function range(text: string): Range | undefined {
  const [from, to, ...more] = text.split('-').map(quantity)
  return isSet(from) && isSet(to) && from <= to && more.length === 0 ? { from, to } : undefined
}

function isSet(value: number | undefined): value is number {
  return value !== undefined
}

function isShare(value: number | undefined): value is number {
  return value !== undefined && value <= 1
}
