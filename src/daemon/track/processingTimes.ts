/**
 * What the answers so far say about one transaction's processing time, as age since it was accepted:
 * still pending at `afterMs` (0 if it was never seen pending), done at `untilMs` (Infinity if not yet seen done).
 */
export interface Observation {
  readonly afterMs: number
  readonly untilMs: number
}

/** How long the service takes: `mass[i]` is the probability of being done at an age in (edgesMs[i], edgesMs[i + 1]]. */
export interface ProcessingTimes {
  /** The rate limit's window: every bound below scales with it, so compressed time behaves alike. */
  readonly windowMs: number
  readonly edgesMs: readonly number[]
  /** Sums to 1; one shorter than `edgesMs`. */
  readonly mass: readonly number[]
  /** How many observations it rests on: those since the service last changed. */
  readonly observations: number
}

/**
 * Learns the processing times of one endpoint, by expectation maximisation over logarithmic bins.
 *
 * An interval is shared out over its bins in proportion to what the rest says about them: a poll that came late
 * narrows nothing and so teaches no slowness. Newer observations weigh more: each keeps 99 % of its weight when
 * the next comes, and where the newest contradict the older ones the service has changed and only 2 % of the older remain.
 * The prior is broad (median a fifth of the window) and weighs as much as two observations; its thin slow tail always
 * stays, so that "certainly done by now" is never concluded. Costs 2 ms for 300 observations, 3 after a change.
 *
 * @param observations newest last; the newest 300 count. Those with NaN, a negative age or an empty interval are ignored
 * @param windowMs the rate limit's window
 */
export function fitProcessingTimes(observations: readonly Observation[], windowMs: number): ProcessingTimes {
  const edgesMs = Array.from({ length: BINS + 1 }, (_, i) => (i === 0 ? 0 : edgeMs(i, windowMs)))
  const start = prior(edgesMs, windowMs)
  const intervals = observations
    .slice(-OBSERVATIONS_MAX)
    .filter(({ afterMs, untilMs }) => afterMs >= 0 && untilMs > afterMs)
    .map(({ afterMs, untilMs }): Interval => {
      const from = Math.min(BINS - 1, binPosition(afterMs, windowMs))
      return { from, to: Math.max(from + POSITIONS_MIN, binPosition(untilMs, windowMs)) }
    })
  const sinceChange = intervalsSinceChange(intervals, start)
  return {
    windowMs,
    edgesMs,
    mass: fitted(intervals, start, ROUNDS, sinceChange),
    observations: sinceChange,
  }
}

/** Returns the probability of being done by an age. */
export function doneBy({ mass, windowMs }: ProcessingTimes, ageMs: number): number {
  return Math.min(1, massBefore(binPosition(ageMs, windowMs), mass, runningSums(mass)))
}

/** Returns the age by which it is done with a probability between 0 and 1, in milliseconds. */
export function quantileMs(model: ProcessingTimes, probability: number): number {
  let left = probability
  for (let i = 0; i < BINS; i++) {
    const mass = model.mass[i] ?? 0
    if (left <= mass) return ageAtPosition(model, i + (mass > 0 ? left / mass : 0))
    left -= mass
  }
  return ageAtPosition(model, BINS)
}

/** Returns the mean processing time in milliseconds, each bin counted at its middle. */
export function meanMs({ mass, edgesMs }: ProcessingTimes): number {
  return mass.reduce((sum, share, i) => sum + (share * ((edgesMs[i] ?? 0) + (edgesMs[i + 1] ?? 0))) / 2, 0)
}

/** Returns an age's place on the scale of bins: 3.5 is the middle of bin 3. Ages past the last edge count as that edge. */
export function binPosition(ageMs: number, windowMs: number): number {
  const firstMs = windowMs * FIRST_EDGE_WINDOWS
  if (ageMs <= firstMs) return Math.max(0, ageMs) / firstMs
  const exact = 1 + Math.log(ageMs / firstMs) / LOG_STEP
  if (exact >= BINS) return BINS
  const bin = Math.floor(exact)
  const lowMs = edgeMs(bin, windowMs)
  return bin + Math.min(1, Math.max(0, (ageMs - lowMs) / (edgeMs(bin + 1, windowMs) - lowMs)))
}

/** Returns the age in milliseconds at a place on the scale of bins; the inverse of {@link binPosition}. */
export function ageAtPosition({ edgesMs }: ProcessingTimes, position: number): number {
  const bin = Math.min(BINS - 1, Math.floor(position))
  const lowMs = edgesMs[bin] ?? 0
  return lowMs + (position - bin) * ((edgesMs[bin + 1] ?? 0) - lowMs)
}

/** Each bin is 6 % wide: 1.8 s at 30 s, as fine as an idle budget can poll. From 50 ms to 6 h at a window of 60 s. */
const BINS = 224
const FIRST_EDGE_WINDOWS = 1 / 1200
const LAST_EDGE_WINDOWS = 360
const LOG_STEP = Math.log(LAST_EDGE_WINDOWS / FIRST_EDGE_WINDOWS) / (BINS - 1)

const OBSERVATIONS_MAX = 300
const KEPT_PER_OBSERVATION = 0.99
const KEPT_OVER_CHANGE = 0.02
const ROUNDS = 20
/** Narrower intervals are widened, and rarer ones weighed less, before the difference of two sums loses its digits. */
const POSITIONS_MIN = 0.25
const MASS_MIN = 1e-12

const PRIOR_WEIGHT = 2
const PRIOR_MEDIAN_WINDOWS = 1 / 5
const PRIOR_SIGMA = 1.2
/** Of the prior, the part that is spread evenly over the logarithm of all ages. */
const TAIL_SHARE = 0.05

/** How many of the newest may be the ones since a change, and how sure that must be: odds of e^8, about 3,000 to 1. */
const CHANGES_TRIED = [16, 24, 40, 64, 100]
const CHANGES_REFINED = [0.7, 0.8, 0.9, 1.15, 1.3]
const OLDER_MIN = 16
const CHANGE_EVIDENCE = 8
/** No single observation is more than this much evidence: one outlier is no change. */
const EVIDENCE_EACH_MAX = 2
const CHANGE_ROUNDS = 5

/** An observation on the scale of bins. */
interface Interval {
  from: number
  to: number
}

/** Returns how many of the newest intervals date from after the service changed; all of them where it has not. */
function intervalsSinceChange(intervals: readonly Interval[], start: readonly number[]): number {
  let [most, since] = [CHANGE_EVIDENCE, intervals.length]
  const tryCounts = (counts: readonly number[]) => {
    for (const count of counts) {
      if (intervals.length < count + OLDER_MIN) continue
      const evidence = changeEvidence(intervals, count, start)
      if (evidence > most) [most, since] = [evidence, count]
    }
  }
  tryCounts(CHANGES_TRIED)
  const roughly = since
  if (roughly < intervals.length) tryCounts(CHANGES_REFINED.map((part) => Math.round(roughly * part)))
  return since
}

/**
 * Returns the evidence that the newest `count` differ from the older: the older ones and every other of the newer make
 * a model each, and the rest of the newer, which neither has seen, say by what odds (a logarithm) they prefer theirs.
 */
function changeEvidence(intervals: readonly Interval[], count: number, start: readonly number[]): number {
  const newer = intervals.slice(-count)
  const seen = newer.filter((_, i) => i % 2 === 0)
  const before = fitted(intervals.slice(0, -count), start, CHANGE_ROUNDS)
  const after = fitted(seen, start, CHANGE_ROUNDS)
  const [beforeSums, afterSums] = [runningSums(before), runningSums(after)]
  return newer
    .filter((_, i) => i % 2 === 1)
    .map((interval) => Math.log(massIn(interval, after, afterSums) / massIn(interval, before, beforeSums)))
    .reduce((sum, odds) => sum + Math.max(-EVIDENCE_EACH_MAX, Math.min(EVIDENCE_EACH_MAX, odds)), 0)
}

function fitted(
  intervals: readonly Interval[],
  start: readonly number[],
  rounds: number,
  since = intervals.length,
): number[] {
  const weights = intervals.map((_, i) => {
    const age = intervals.length - 1 - i
    return KEPT_PER_OBSERVATION ** age * (age < since ? 1 : KEPT_OVER_CHANGE)
  })
  let mass = start
  for (let round = 0; round < rounds; round++) mass = maximised(mass, intervals, weights, start)
  return spread(spread(mass))
}

function edgeMs(i: number, windowMs: number): number {
  return windowMs * FIRST_EDGE_WINDOWS * Math.exp((i - 1) * LOG_STEP)
}

/** One round: shares each interval out over its bins (a difference array: no inner loop), adds the prior, normalises. */
function maximised(
  mass: readonly number[],
  intervals: readonly Interval[],
  weights: readonly number[],
  start: readonly number[],
): number[] {
  const sums = runningSums(mass)
  const slope = new Float64Array(BINS + 2)
  /** Adds `amount` to the multiplier of everything from `position` on; a bin begun in the middle counts in part. */
  const addFrom = (position: number, amount: number) => {
    const bin = Math.floor(position)
    slope[bin] = (slope[bin] ?? 0) + amount * (bin + 1 - position)
    slope[bin + 1] = (slope[bin + 1] ?? 0) + amount * (position - bin)
  }
  intervals.forEach((interval, i) => {
    const share = (weights[i] ?? 0) / massIn(interval, mass, sums)
    addFrom(interval.from, share)
    addFrom(interval.to, -share)
  })
  let multiplier = 0
  return normalised(
    mass.map((share, i) => {
      multiplier += slope[i] ?? 0
      return Math.max(0, share * multiplier) + PRIOR_WEIGHT * (start[i] ?? 0)
    }),
  )
}

function runningSums(mass: readonly number[]): Float64Array {
  const sums = new Float64Array(BINS + 1)
  for (let i = 0; i < BINS; i++) sums[i + 1] = (sums[i] ?? 0) + (mass[i] ?? 0)
  return sums
}

function massIn({ from, to }: Interval, mass: readonly number[], sums: Float64Array): number {
  return Math.max(MASS_MIN, massBefore(to, mass, sums) - massBefore(from, mass, sums))
}

function massBefore(position: number, mass: readonly number[], sums: Float64Array): number {
  const bin = Math.min(BINS - 1, Math.floor(position))
  return (sums[bin] ?? 0) + (position - bin) * (mass[bin] ?? 0)
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

/** Spreads each bin a little over its neighbours: a few dozen weighted observations are not exact to 6 %. */
function spread(mass: readonly number[]): number[] {
  const at = (i: number) => mass[Math.min(BINS - 1, Math.max(0, i))] ?? 0
  return normalised(mass.map((_, i) => (at(i - 2) + 4 * at(i - 1) + 6 * at(i) + 4 * at(i + 1) + at(i + 2)) / 16))
}

function normalised(mass: readonly number[]): number[] {
  const sum = mass.reduce((total, share) => total + share, 0)
  return mass.map((share) => share / sum)
}
