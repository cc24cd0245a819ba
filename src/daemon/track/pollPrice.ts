import { meanProcessingTimeMs, type ProcessingTimes, processingTimeQuantileMs } from './processingTimes.ts'
import { expectedPolls } from './schedule.ts'

export interface Pressure {
  readonly capacity: number
  readonly submissionsWaiting: number
  readonly accepted: number
  /** Records per window, a moving average. */
  readonly inflow: number
}

/**
 * Returns what a poll costs, as milliseconds of delay for all others, because it takes a slot (docs/why/schedule.md).
 *
 * While submissions wait, the slot delays at least all of them by window / limit. Otherwise the price is the one at
 * which the polls of all accepted records fit the slots of their horizon.
 *
 * @param awaitedAgesMs ages at which accepted transactions were last seen pending, if known
 */
export function pollPriceMs(pressure: Pressure, awaitedAgesMs: readonly number[], model: ProcessingTimes): number {
  const { submissionsWaiting, accepted } = pressure
  const eachMs = delayEachMs(pressure, model)
  const leastMs = Math.max(model.windowMs * FLOOR_WINDOWS, submissionsWaiting * eachMs)
  const mostMs = Math.max(leastMs, (submissionsWaiting + accepted) * eachMs)
  const slots = slotsInSight(pressure, model)
  const fits = (priceMs: number) => slotsWanted(pressure, awaitedAgesMs, model, priceMs) <= slots
  if (fits(leastMs)) return leastMs
  let [tooLow, enough] = [leastMs, mostMs]
  while (enough / tooLow > PRECISION) {
    const middle = Math.sqrt(tooLow * enough)
    if (fits(middle)) enough = middle
    else tooLow = middle
  }
  return enough
}

/** 0.24 s at a window of 60 s, right if a batch comes every 125 windows. */
const FLOOR_WINDOWS = 1 / 250
/** The same share of slots that the dispatcher reserves for submissions. */
const RESERVE_SHARE = 0.1
const HORIZON_SHARE = 0.95
const LOAD_MAX = 0.9
const SLOTS_LEAST = 2
const PRECISION = 1.1

function delayEachMs({ capacity, inflow }: Pressure, { windowMs }: ProcessingTimes): number {
  const slots = Math.max(1, capacity)
  const load = Math.min(LOAD_MAX, (inflow * SLOTS_LEAST) / slots)
  return windowMs / slots / (1 - load)
}

function slotsInSight({ capacity }: Pressure, model: ProcessingTimes): number {
  return capacity * horizonWindows(model) * (1 - RESERVE_SHARE)
}

/** The slots wanted within the horizon: for the usual inflow, and for the polls of a batch above it. */
function slotsWanted(
  { submissionsWaiting, accepted, inflow }: Pressure,
  awaitedAgesMs: readonly number[],
  model: ProcessingTimes,
  priceMs: number,
): number {
  const pollsEach = expectedPolls(model, 0, priceMs)
  const pollsSeen = awaitedAgesMs.reduce((sum, ageMs) => sum + expectedPolls(model, ageMs, priceMs), 0)
  const pollsAwaited = pollsSeen + Math.max(0, accepted - awaitedAgesMs.length) * pollsEach
  const usual = (inflow * meanProcessingTimeMs(model)) / model.windowMs
  const ofBatch = accepted > usual ? pollsAwaited * (1 - usual / accepted) : 0
  return (submissionsWaiting + inflow * horizonWindows(model)) * (1 + pollsEach) + ofBatch
}

function horizonWindows(model: ProcessingTimes): number {
  return Math.max(1, processingTimeQuantileMs(model, HORIZON_SHARE) / model.windowMs)
}
