import type { Demand } from '../model.ts'
import { readyCountMax } from './dispatch/dispatcher.ts'
import type { Seen } from './track/pollPlanner.ts'

/**
 * What the poll planner has to know of a look at the ledger. All that waits counts, also in the outbox; but only where the
 * ledger is full, for else what was counted there some seconds ago has been captured since. Pure.
 *
 * @param outboxWaiting rows, or an estimate of them
 */
export function budgetSeen(
  { capacity, submissionsReady, spentOnSubmissions, tracked }: Demand,
  captureWindow: number,
  outboxWaiting: number,
): Omit<Seen, 'nowMs'> {
  const isFull = submissionsReady >= Math.min(captureWindow, readyCountMax) / 2
  return {
    capacity,
    submissionsWaiting: submissionsReady + (isFull ? outboxWaiting : 0),
    submissionsSent: spentOnSubmissions,
    accepted: tracked,
  }
}
