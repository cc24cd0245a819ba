import { meanMs, type ProcessingTimes, quantileMs } from './processingTimes.ts'
import { expectedPolls } from './schedule.ts'

/** What the budget looks like at the moment, over all instances. */
export interface Pressure {
  /** Requests that the limit allows in a window. */
  readonly capacity: number
  /** Records that wait for their first request, in the outbox and in the ledger. */
  readonly submissionsWaiting: number
  /** Transactions accepted and not yet seen to their end. */
  readonly accepted: number
  /** Records that come in a window, averaged over the last few. */
  readonly inflow: number
}

/**
 * What a poll costs, in milliseconds of delay: how much longer all others wait together because it takes a slot. Pure.
 *
 * A slot that is taken makes everybody behind it wait one slot longer, which is window / limit, and so it does those who come
 * until nobody waits. While submissions wait, that is at least all of them. Else slots are short only as far as the polls of
 * all that is under way do not fit the slots of their own horizon: the price is the one at which they do, and no more than if
 * everything under way waited for this slot.
 *
 * @param awaitedAgesMs of accepted transactions, as far as they were looked at, the ages at which they were last seen pending
 * @param model the endpoint's processing times; all that is under way is taken for its own
 * @see docs/schedule.md
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
 * 0.24 s at a window of 60 s. When nothing waits a slot is worth something still: it is missing for a window, and of a batch
 * that comes meanwhile one record loses half a window. So this is the price if one comes every 125 windows.
 */
const FLOOR_WINDOWS = 1 / 250
/** Of the slots in sight, what is left to the next batch: as much as the dispatcher keeps from polls. */
const RESERVE_SHARE = 0.1
const HORIZON_SHARE = 0.95
/** Near the limit a queue takes for ever to end, if things stay as they are; they do not. */
const LOAD_MAX = 0.9
/** A record costs one submission and one poll at least. */
const SLOTS_LEAST = 2
const PRECISION = 1.1

/** By how much a taken slot delays each that waits, and for each those who come before the queue has ended. */
function delayEachMs({ capacity, inflow }: Pressure, { windowMs }: ProcessingTimes): number {
  const slots = Math.max(1, capacity)
  const load = Math.min(LOAD_MAX, (inflow * SLOTS_LEAST) / slots)
  return windowMs / slots / (1 - load)
}

/** The slots in the time in which what is accepted now will nearly all be done. */
function slotsInSight({ capacity }: Pressure, model: ProcessingTimes): number {
  return capacity * horizonWindows(model) * (1 - RESERVE_SHARE)
}

/**
 * The requests in that time: those of the records that come in as they came of late, whose accepted ones are as many as
 * mean / window says; and the polls of those that are more than that, which is what is left of a batch.
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
