import { PollPlanner } from '../../../src/daemon/pollPlanner.ts'
import type { Schedule } from '../simulation.ts'

/** The daemon's own schedule, without learned data. Moves polls once a tick, as `PollPlanUpdates` does. */
export function learned(windowMs: number): Schedule {
  const planner = new PollPlanner(windowMs)
  const timesMs: number[] = []
  let learnedFrom = 0
  let learnAtMs = 0

  /** The daemon learns once a second. Here, every fifth second is as good and costs less. */
  function learn(nowMs: number): void {
    if (timesMs.length === learnedFrom || nowMs < learnAtMs) return
    planner.learn(timesMs.slice(-300).map((ms) => ({ resource: 'data', ms })))
    learnedFrom = timesMs.length
    learnAtMs = nowMs + windowMs / 12
  }

  return {
    name: 'learned',
    press(seen, nowMs) {
      planner.noteDemand(seen)
      planner.noteLoad(seen, nowMs)
    },
    next: ({ acceptedAtMs, notDoneAtMs }) => planner.nextPollDelayMs('data', notDoneAtMs - acceptedAtMs),
    learn: (ms) => void timesMs.push(ms),
    replan(planned, nowMs) {
      learn(nowMs)
      if (!planner.canMovePolls()) return []
      const byId = new Map(planned.slice(0, 1_000).map((each, i) => [String(i), each]))
      const polls = [...byId].map(([submissionId, { transaction, atMs }]) => ({
        submissionId,
        resource: 'data' as const,
        ageMs: nowMs - transaction.acceptedAtMs,
        notDoneMs: transaction.polls === 0 ? null : transaction.notDoneAtMs - transaction.acceptedAtMs,
        inMs: atMs - nowMs,
      }))
      return planner.findPollsToMove(polls).flatMap(({ submissionId, inMs }) => {
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
