import { meanMs, type ProcessingTimes, quantileMs } from './processingTimes.ts'
import { expectedPolls } from './schedule.ts'

export interface Pressure {
  readonly capacity: number
  /** Records that wait for their first request, in outbox and ledger. */
  readonly submissionsWaiting: number
  readonly accepted: number
  /** Records that come in a window, averaged over the last few. */
  readonly inflow: number
}

/**
 * Returns what a poll costs, in milliseconds of delay: how much longer all others wait because it takes a slot. Pure.
 *
 * A taken slot delays all behind it by window / limit, until none waits. While submissions wait, that is at least all
 * of them. Otherwise slots are short only as far as the polls of all under way do not fit the slots of their horizon.
 * The price is the one at which they fit, at most as if all under way waited for this slot.
 *
 * @param awaitedAgesMs ages at which accepted transactions were last seen pending, as far as they were looked at
 * @see docs/why/schedule.md
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

/**
 * 0.24 s at a window of 60 s, although nothing waits: the slot is missing for a window, and a batch that comes
 * meanwhile loses half a window for one record. Right if a batch comes every 125 windows.
 */
const FLOOR_WINDOWS = 1 / 250
/** Slots in sight that are left to the next batch: as many as the dispatcher keeps from polls. */
const RESERVE_SHARE = 0.1
const HORIZON_SHARE = 0.95
/** Keeps the queue from growing for ever on paper near the limit. */
const LOAD_MAX = 0.9
const SLOTS_LEAST = 2
const PRECISION = 1.1

function delayEachMs({ capacity, inflow }: Pressure, { windowMs }: ProcessingTimes): number {
  const slots = Math.max(1, capacity)
  const load = Math.min(LOAD_MAX, (inflow * SLOTS_LEAST) / slots)
  return windowMs / slots / (1 - load)
}

/** In the time in which what is accepted now will nearly all be done. */
function slotsInSight({ capacity }: Pressure, model: ProcessingTimes): number {
  return capacity * horizonWindows(model) * (1 - RESERVE_SHARE)
}

/**
 * The requests in that time: of records that come as they came of late, and polls of accepted ones beyond the usual
 * number (mean / window), which are what is left of a batch.
 */
function slotsWanted(
  { submissionsWaiting, accepted, inflow }: Pressure,
  awaitedAgesMs: readonly number[],
  model: ProcessingTimes,
  priceMs: number,
): number {
  const pollsEach = expectedPolls(model, 0, priceMs)
  const pollsSeen = awaitedAgesMs.reduce((sum, ageMs) => sum + expectedPolls(model, ageMs, priceMs), 0)
  const pollsAwaited = pollsSeen + Math.max(0, accepted - awaitedAgesMs.length) * pollsEach
  const usual = (inflow * meanMs(model)) / model.windowMs
  const ofBatch = accepted > usual ? pollsAwaited * (1 - usual / accepted) : 0
  return (submissionsWaiting + inflow * horizonWindows(model)) * (1 + pollsEach) + ofBatch
}

function horizonWindows(model: ProcessingTimes): number {
  return Math.max(1, quantileMs(model, HORIZON_SHARE) / model.windowMs)
}
