import { createPollPlanner } from '../../../src/daemon/track/pollPlanner.ts'
import type { ObservedProcessingTime } from '../../../src/daemon/track/processingTimes.ts'
import type { Schedule } from '../simulation.ts'
import { randomFrom } from './workloads.ts'

/**
 * The daemon's own schedule, without learned data. Learns and moves polls once a tick, as `createPollPlanUpdater` does.
 */
export function learned({ windowMs, limit, seed = 1 }: { windowMs: number; limit: number; seed?: number }): Schedule {
  const observations: ObservedProcessingTime[] = []
  const planner = createPollPlanner(windowMs, limit, randomFrom(seed))
  let learnedFrom = 0

  /** The daemon fits once a second. Here, every tenth observation is as good and costs a tenth. */
  function learn(): void {
    const fresh = observations.length - learnedFrom
    if (fresh === 0 || (fresh < 10 && observations.length > 20)) return
    planner.learn(observations.slice(-300).map((each) => ({ ...each, resource: 'data' })))
    learnedFrom = observations.length
  }

  return {
    name: 'learned',
    press: planner.updatePressure,
    next: ({ acceptedAtMs, notDoneAtMs }) => planner.nextPollDelayMs('data', notDoneAtMs - acceptedAtMs),
    learn: (observation) => void observations.push(observation),
    replan(planned, nowMs) {
      learn()
      if (!planner.mayReplan()) return []
      const byId = new Map(planned.slice(0, 200).map((each, i) => [String(i), each]))
      const polls = [...byId].map(([submissionId, { transaction, atMs }]) => ({
        submissionId,
        jobId: submissionId,
        resource: 'data' as const,
        ageMs: nowMs - transaction.acceptedAtMs,
        notDoneMs: transaction.polls === 0 ? null : transaction.notDoneAtMs - transaction.acceptedAtMs,
        inMs: atMs - nowMs,
      }))
      return planner.replan(polls).flatMap(({ submissionId, inMs }) => {
        const moved = byId.get(submissionId)
        return moved ? [{ transaction: moved.transaction, atMs: nowMs + inMs }] : []
      })
    },
  }
}

const learnsNothing = { press: () => {}, learn: () => {}, replan: () => [] }

export function every(intervalMs: number, name: string): Schedule {
  return { name, next: () => intervalMs, ...learnsNothing }
}

export function doubling(firstMs: number, maxMs: number, name: string): Schedule {
  return { name, next: ({ polls }) => Math.min(maxMs, firstMs * 2 ** polls), ...learnsNothing }
}

/** Polls at the moment when a transaction is done. No real schedule can do that, so this is the bound. */
export const oracle: Schedule = {
  name: 'oracle',
  next: ({ doneAtMs }, nowMs) => doneAtMs - nowMs,
  ...learnsNothing,
}
