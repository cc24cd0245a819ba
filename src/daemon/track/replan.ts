import type { MovedPoll, PlannedPoll } from '../../model.ts'
import type { Resource } from '../../resources.ts'

/** A poll is moved if that brings it forward by this part of its wait. */
const worthwhileShare = 0.2

/**
 * Brings polls forward that were planned when slots were short or less was known: a burst of records plans its polls
 * late, and once it is through slots lie idle. Pure. Never puts a poll off.
 *
 * @param nextPollMs when to ask for a transaction of a resource that was not done at an age, milliseconds after that age
 */
export function replan(
  polls: readonly PlannedPoll[],
  nextPollMs: (resource: Resource, notDoneAgeMs: number) => number,
): MovedPoll[] {
  return polls.flatMap(({ submissionId, jobId, resource, ageMs, notDoneMs, inMs }) => {
    const notDoneAgeMs = notDoneMs ?? 0
    const betterInMs = Math.max(0, notDoneAgeMs + nextPollMs(resource, notDoneAgeMs) - ageMs)
    return betterInMs < inMs * (1 - worthwhileShare) ? [{ submissionId, jobId, inMs: betterInMs }] : []
  })
}
