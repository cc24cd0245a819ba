import { layOut } from '../crash/printReport.ts'
import type { FailoverResult } from './runFailovers.ts'

/** Returns the figures, and each violation with what is known about its record. */
export function printFailovers({ options, seconds, report, history, violations }: FailoverResult): string {
  const states = Map.groupBy(history.ledger, ({ state }) => state)
  const figures: [string, unknown][] = [
    ['mode', options.mode],
    ['seed', options.seed],
    ['mutation', options.mutation ?? 'none'],
    ['seconds', seconds],
    ['daemons', options.daemons],
    ['failovers', report.failovers],
    ['went on by itself', report.wentOn],
    ['stopped, and recovered by a person', report.stopped],
    ['requests whose claim was lost', report.lostRequests],
    ['kill -9 of daemons', report.kills],
    ['records', history.outbox.length],
    ['requests', history.requests],
    ['most in a window', `${history.requestsMost} of ${history.requestsAllowed}`],
    ...[...states].map(([state, those]): [string, unknown] => [`became ${state}`, those.length]),
  ]
  return layOut(figures, 'nothing was lost, nothing was sent twice', violations)
}
