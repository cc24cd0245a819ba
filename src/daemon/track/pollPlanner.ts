import type { MovedPoll, PlannedPoll } from '../../model.ts'
import { forEachResource, type Resource } from '../../resources.ts'
import { createInflow } from './inflow.ts'
import { type Pressure, pollPriceMs } from './price.ts'
import { fitProcessingTimes, type Observation, type ProcessingTimes } from './processingTimes.ts'
import { replan } from './replan.ts'
import { nextPollMs } from './schedule.ts'

/** The budget at a look, over all instances. */
export interface Seen extends Pick<Pressure, 'capacity' | 'submissionsWaiting' | 'accepted'> {
  /** Submissions of the last window. */
  readonly submissionsSent: number
  /** On a clock that nobody sets. */
  readonly nowMs: number
}

/** When to poll, from what was learned last and how scarce slots are now. */
export interface PollPlanner {
  learn(observations: readonly (Observation & { resource: Resource })[]): void
  /** What the dispatcher has seen. */
  press(seen: Seen): void
  /** Milliseconds from now until a transaction of that age, not yet done, should be asked for. */
  nextPollMs(resource: Resource, notDoneAgeMs: number): number
  /** Whether slots lie idle while transactions are waited for, so that it pays to look at the plans again. */
  mayReplan(): boolean
  /** The polls that should come earlier than they were planned. */
  replan(polls: readonly PlannedPoll[]): MovedPoll[]
}

/** Chance picks between plans and explores, once a poll: drawn again and again it would end with the earliest. */
const noChance = 1 - Number.EPSILON

/**
 * @param windowMs the rate limit's window
 * @param random   in [0, 1), fresh for each call
 */
export function createPollPlanner(windowMs: number, capacity: number, random: () => number): PollPlanner {
  let models: Record<Resource, ProcessingTimes> = forEachResource(() => fitProcessingTimes([], windowMs))
  let pressure: Pressure = { capacity, submissionsWaiting: 0, accepted: 0, inflow: 0 }
  const inflow = createInflow(windowMs)
  let awaitedAgesMs: Record<Resource, number[]> = forEachResource(() => [])
  /** Reckoned when it is asked for: the dispatcher looks more often than a poll is planned. */
  const prices = new Map<Resource, number>()

  function priceMs(resource: Resource): number {
    const known = prices.get(resource)
    if (known !== undefined) return known
    const price = pollPriceMs(pressure, awaitedAgesMs[resource], models[resource])
    prices.set(resource, price)
    return price
  }

  return {
    learn(observations) {
      models = forEachResource((resource) =>
        fitProcessingTimes(
          observations.filter((each) => each.resource === resource),
          windowMs,
        ),
      )
      prices.clear()
    },
    press(seen) {
      pressure = { ...seen, inflow: inflow.perWindow(seen) }
      prices.clear()
    },
    nextPollMs: (resource, notDoneAgeMs) => nextPollMs(models[resource], notDoneAgeMs, priceMs(resource), random()),
    mayReplan: () => pressure.accepted > 0 && pressure.submissionsWaiting === 0,
    replan(polls) {
      awaitedAgesMs = forEachResource((resource) =>
        polls.filter((poll) => poll.resource === resource).map(({ notDoneMs }) => notDoneMs ?? 0),
      )
      prices.clear()
      return replan(polls, (resource, notDoneAgeMs) =>
        nextPollMs(models[resource], notDoneAgeMs, priceMs(resource), noChance),
      )
    },
  }
}
