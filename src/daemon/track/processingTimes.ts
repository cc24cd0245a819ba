/**
 * One transaction's processing time: last seen pending at age `afterMs` (0 if never), first seen done at age `untilMs`
 * (Infinity if not yet).
 */
export interface ObservedProcessingTime {
  readonly afterMs: number
  readonly untilMs: number
}

/** `mass[i]` is the probability that a transaction is done at an age in (edgesMs[i], edgesMs[i + 1]]. */
export interface ProcessingTimes {
  /** All bounds scale with the rate limit's window, so that tests with a short window behave alike. */
  readonly windowMs: number
  readonly edgesMs: readonly number[]
  readonly mass: readonly number[]
  readonly observations: number
}

/**
 * Learns the processing times of one endpoint: a weighted empirical distribution over logarithmic bins.
 *
 * The weight of an observation is spread over its interval like the distribution so far, so that a late poll does not
 * look like slow processing. Each observation reduces the weight of earlier ones by 1.5 %, so the model follows a
 * change after 50 to 100 observations. The prior's slow tail keeps the model from being certain that a transaction is
 * done.
 *
 * @param observations newest last; uses the newest 300 and ignores impossible ones
 */
export function fitProcessingTimes(observations: readonly ObservedProcessingTime[], windowMs: number): ProcessingTimes {
  const edgesMs = Array.from({ length: BINS + 1 }, (_, i) => (i === 0 ? 0 : edgeMs(i, windowMs)))
  const intervals = observations
    .slice(-OBSERVATIONS_MAX)
    .filter(({ afterMs, untilMs }) => afterMs >= 0 && untilMs > afterMs)
  const start = prior(edgesMs, windowMs).map((share) => PRIOR_WEIGHT * share)
  const weights = start.slice()
  for (const { afterMs, untilMs } of intervals) {
    const from = Math.min(BINS - 1, Math.floor(fractionalBinOfAge(afterMs, windowMs)))
    const to = Math.max(from + 1, Math.ceil(fractionalBinOfAge(untilMs, windowMs)))
    const shares = normalised(weights.slice(from, to))
    for (let bin = 0; bin < BINS; bin++) {
      const own = start[bin] ?? 0
      weights[bin] = own + ((weights[bin] ?? 0) - own) * KEPT_PER_OBSERVATION + (shares[bin - from] ?? 0)
    }
  }
  return { windowMs, edgesMs, mass: spread(spread(normalised(weights))), observations: intervals.length }
}

export function processingTimeQuantileMs(model: ProcessingTimes, probability: number): number {
  let left = probability
  for (let i = 0; i < BINS; i++) {
    const mass = model.mass[i] ?? 0
    if (left <= mass) return ageMsAtFractionalBin(model, i + (mass > 0 ? left / mass : 0))
    left -= mass
  }
  return ageMsAtFractionalBin(model, BINS)
}

export function meanProcessingTimeMs({ mass, edgesMs }: ProcessingTimes): number {
  return mass.reduce((sum, share, i) => sum + (share * ((edgesMs[i] ?? 0) + (edgesMs[i + 1] ?? 0))) / 2, 0)
}

/** Returns the bin of an age with a fraction: 3.5 is the middle of bin 3. */
export function fractionalBinOfAge(ageMs: number, windowMs: number): number {
  const firstMs = windowMs * FIRST_EDGE_WINDOWS
  if (ageMs <= firstMs) return Math.max(0, ageMs) / firstMs
  const exact = 1 + Math.log(ageMs / firstMs) / LOG_STEP
  if (exact >= BINS) return BINS
  const bin = Math.floor(exact)
  const lowMs = edgeMs(bin, windowMs)
  return bin + Math.min(1, Math.max(0, (ageMs - lowMs) / (edgeMs(bin + 1, windowMs) - lowMs)))
}

export function ageMsAtFractionalBin({ edgesMs }: ProcessingTimes, fractionalBin: number): number {
  const bin = Math.min(BINS - 1, Math.floor(fractionalBin))
  const lowMs = edgesMs[bin] ?? 0
  return lowMs + (fractionalBin - bin) * ((edgesMs[bin + 1] ?? 0) - lowMs)
}

/** Each bin is 6 % wide: 1.8 s at an age of 30 s. */
const BINS = 224
const FIRST_EDGE_WINDOWS = 1 / 1200
const LAST_EDGE_WINDOWS = 360
const LOG_STEP = Math.log(LAST_EDGE_WINDOWS / FIRST_EDGE_WINDOWS) / (BINS - 1)

const OBSERVATIONS_MAX = 300
const KEPT_PER_OBSERVATION = 0.985

const PRIOR_WEIGHT = 2
const PRIOR_MEDIAN_WINDOWS = 1 / 5
const PRIOR_SIGMA = 1.2
const TAIL_SHARE = 0.05

function edgeMs(i: number, windowMs: number): number {
  return windowMs * FIRST_EDGE_WINDOWS * Math.exp((i - 1) * LOG_STEP)
}

function prior(edgesMs: readonly number[], windowMs: number): number[] {
  const medianMs = windowMs * PRIOR_MEDIAN_WINDOWS
  const logNormal = normalised(
    Array.from({ length: BINS }, (_, i) => {
      const middleMs = ((edgesMs[i] ?? 0) + (edgesMs[i + 1] ?? 0)) / 2
      return Math.exp(-0.5 * (Math.log(middleMs / medianMs) / PRIOR_SIGMA) ** 2)
    }),
  )
  return logNormal.map((share) => (1 - TAIL_SHARE) * share + TAIL_SHARE / BINS)
}

function spread(mass: readonly number[]): number[] {
  const at = (i: number) => mass[Math.min(BINS - 1, Math.max(0, i))] ?? 0
  return normalised(mass.map((_, i) => (at(i - 2) + 4 * at(i - 1) + 6 * at(i) + 4 * at(i + 1) + at(i + 2)) / 16))
}

function normalised(mass: readonly number[]): number[] {
  const sum = mass.reduce((total, share) => total + share, 0)
  return mass.map((share) => share / sum)
}
