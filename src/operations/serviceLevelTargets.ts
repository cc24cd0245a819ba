import {
  type CountsByKind,
  type RecentRequestCounts,
  type RequestCounts,
  slowRequestMs,
} from '../ledger/requestCounts.ts'

/** From docs/reference/interface.md, section 8. */
export const serviceLevelTargets = { successShare: 0.99, fastShare: 0.99, answerSeconds: slowRequestMs / 1000 }

export interface ServicePerformance {
  counts: RequestCounts
  successShare: number | null
  fastShare: number | null
}

export function servicePerformanceOf(counts: RequestCounts): ServicePerformance {
  const { requests, failed, answered, slow } = counts
  return {
    counts,
    successShare: requests === 0 ? null : 1 - failed / requests,
    fastShare: answered === 0 ? null : 1 - slow / answered,
  }
}

export function servicePerformanceMessage(byKind: CountsByKind): string {
  const { counts, successShare, fastShare } = servicePerformanceOf(sumRequestCounts(byKind))
  if (successShare === null) return 'no request for a record'
  const fast =
    fastShare === null
      ? ''
      : `, ${formatPercent(fastShare)} of the answers came within ${serviceLevelTargets.answerSeconds} s ${target(fastShare, serviceLevelTargets.fastShare)}`
  const sent = `${counts.requests} ${counts.requests === 1 ? 'submission or poll' : 'submissions and polls'}`
  return `${formatPercent(successShare)} of ${sent} succeeded ${target(successShare, serviceLevelTargets.successShare)}${fast}`
}

const target = (share: number, least: number) =>
  `(${share < least ? 'below the target of' : 'target'} ${formatPercent(least)})`

/** Rounds down, so that a missed target never looks met. */
export function formatPercent(share: number): string {
  // A share such as 0.992 may be stored as a little less.
  return `${Math.floor(share * 1_000 + 1e-6) / 10} %`
}

/**
 * As in the alerts OutboxdServiceFailing and OutboxdServiceSlow: 14.4 times the allowed share in the last hour and in the
 * last 5 minutes, so that an outage that is over is not reported, and at least 10 failed or slow requests.
 */
const alarming = { share: 0.144, requestsMin: 10 }

export function serviceAlarmMessages(recent: Pick<RecentRequestCounts, 'lastHour' | 'last5Minutes'>): string[] {
  const { requests, failed, answered, slow } = sumRequestCounts(recent.lastHour)
  const now = sumRequestCounts(recent.last5Minutes)
  const isAlarming = (bad: number, all: number) => bad >= alarming.requestsMin && bad / all > alarming.share
  const goesOn = (bad: number, all: number) => bad > alarming.share * all
  return [
    isAlarming(failed, requests) && goesOn(now.failed, now.requests)
      ? `In the last hour ${failed} of ${requests} requests failed at the service (target: under 1 %). \`outboxd check\` shows what it answers now.`
      : null,
    isAlarming(slow, answered) && goesOn(now.slow, now.answered)
      ? `In the last hour ${slow} of ${answered} answers of the service took longer than its target of ${serviceLevelTargets.answerSeconds} s. Tell the operator of the service. \`outboxd pause --reason TEXT\` keeps records from becoming uncertain.`
      : null,
  ].filter((message) => message !== null)
}

export function servicePerformanceJson({ lastHour, lastDay, last28Days }: RecentRequestCounts) {
  return {
    targets: serviceLevelTargets,
    lastHour: timeJson(lastHour),
    lastDay: timeJson(lastDay),
    last28Days: timeJson(last28Days),
  }
}

function timeJson(counts: CountsByKind) {
  const { successShare, fastShare } = servicePerformanceOf(sumRequestCounts(counts))
  return { successShare, fastShare, ...counts }
}

export function sumRequestCounts({ submit, status }: CountsByKind): RequestCounts {
  return {
    requests: submit.requests + status.requests,
    failed: submit.failed + status.failed,
    answered: submit.answered + status.answered,
    slow: submit.slow + status.slow,
  }
}
