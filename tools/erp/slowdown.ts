/** Milliseconds of two confirmations of one sale. */
export interface ConfirmPair {
  readonly with: number
  readonly without: number
}

/** How much longer a confirmation takes with change capture: the ratios of the pairs. */
export interface Slowdown {
  readonly pairs: number
  readonly median: number
  /** The median lies between these with a probability of 99.8 %. */
  readonly low: number
  readonly high: number
}

/** A confirmation may take this many times as long with change capture. */
export const slowerMax = 1.1

/** Standard deviations on each side that hold 99.8 % of a normal distribution. */
const deviations = 3.09

/**
 * Computes the median ratio and its confidence interval by ranks, which assumes nothing about the distribution: how many of n ratios lie
 * below the true median is binomial, with the mean n / 2 and the deviation √n / 2. A busy machine makes the interval wider, not wrong,
 * because it delays both of a pair alike.
 */
export function measureSlowdown(pairs: readonly ConfirmPair[]): Slowdown {
  const ratios = pairs.map((ms) => ms.with / ms.without).sort((a, b) => a - b)
  const middle = (ratios.length - 1) / 2
  const reach = (deviations * Math.sqrt(ratios.length)) / 2 + 0.5
  const at = (rank: number) => ratios[Math.min(ratios.length - 1, Math.max(0, rank))] ?? Number.NaN
  return {
    pairs: ratios.length,
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    low: at(Math.floor(middle - reach)),
    high: at(Math.ceil(middle + reach)),
  }
}

/** True if it is certain that the limit is exceeded: a run without the fault fails once in a thousand times. */
export const isTooSlow = ({ low }: Slowdown): boolean => low > slowerMax
