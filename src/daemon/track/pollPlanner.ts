import type { MovedPoll, PlannedPoll } from '../../model.ts'
import { forEachResource, type Resource } from '../../resources.ts'
import { fitProcessingTimes, type Observation, type ProcessingTimes } from './processingTimes.ts'
import { replan } from './replan.ts'
import { certainty, nextPollMs, type Pressure } from './schedule.ts'

/** When to poll, from what was learned last and how scarce slots are now. */
export interface PollPlanner {
  learn(observations: readonly (Observation & { resource: Resource })[]): void
  press(pressure: Pressure): void
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
  let pressure: Pressure = { capacity, slotsOnSubmissions: 0, submissionsReady: 0, accepted: 0 }
  return {
    learn(observations) {
      models = forEachResource((resource) =>
        fitProcessingTimes(
          observations.filter((each) => each.resource === resource),
          windowMs,
        ),
      )
    },
    press(now) {
      pressure = now
    },
    nextPollMs(resource, notDoneAgeMs) {
      const model = models[resource]
      return nextPollMs(model, notDoneAgeMs, certainty(pressure, model), random())
    },
    mayReplan: () => pressure.accepted > 0 && pressure.submissionsReady === 0,
    replan: (polls) =>
      replan(polls, (resource, notDoneAgeMs) => {
        const model = models[resource]
        return nextPollMs(model, notDoneAgeMs, certainty(pressure, model), noChance)
      }),
  }
}
