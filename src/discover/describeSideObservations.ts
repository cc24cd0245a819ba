import { describeSeen, type Exchange, endedAtMs, transactionStatusIn } from './exchange.ts'
import { showMs } from './finding.ts'
import { hadArrivedBefore } from './observe.ts'
import type { Throttle } from './question.ts'

/** Lists in sentences what the exchanges showed apart from the answers to questions. */
export function describeSideObservations(exchanges: readonly Exchange[], throttles: readonly Throttle[]): string[] {
  return [
    ...lateOnes(exchanges),
    ...throttled(throttles),
    ...rareStatuses(exchanges),
    ...troubles(exchanges),
    ...repeats(exchanges),
  ]
}

/** Ids that were answered 404 before they were answered 200. */
function lateOnes(exchanges: readonly Exchange[]): string[] {
  const gets = exchanges.filter(({ method }) => method === 'GET')
  const late = Object.values(Object.groupBy(gets, ({ path }) => path)).flatMap((all = []) => {
    const shown = all.findIndex((each) => transactionStatusIn(each) !== null)
    const [first, last] = [all[0], all[shown - 1]]
    return first?.answer.kind === 'response' && last !== undefined
      ? [{ times: shown, ms: endedAtMs(last) - first.startedAtMs, first }]
      : []
  })
  const [one] = late
  if (one === undefined) return []
  const longest = Math.max(...late.map(({ ms }) => ms))
  const status = one.first.answer.kind === 'response' ? one.first.answer.status : 0
  return [`${late.length} records were answered ${status} at first, for up to ${showMs(longest)} after they were taken`]
}

function throttled(throttles: readonly Throttle[]): string[] {
  const [first] = throttles
  if (first === undefined) return []
  const waits = throttles.map(({ waitedMs }) => waitedMs)
  return [
    `${throttles.length} requests were answered 429 and let in after ${showMs(Math.min(...waits))} to ${showMs(Math.max(...waits))}: ${describeSeen(first.refused.answer)}`,
  ]
}

function rareStatuses(exchanges: readonly Exchange[]): string[] {
  const said = exchanges.filter(({ method }) => method === 'GET').flatMap((each) => transactionStatusIn(each) ?? [])
  const counts = Object.entries(Object.groupBy(said, (status) => status))
  return counts.filter(([, all]) => all?.length === 1).map(([status]) => `the status ${status} appeared once`)
}

function troubles(exchanges: readonly Exchange[]): string[] {
  const all = exchanges.filter(({ answer }) => answer.kind === 'no-answer' || answer.status >= 500)
  const [first] = all
  return first === undefined
    ? []
    : [
        `${all.length} requests met a 5xx or no answer, first ${first.method} ${first.path}: ${describeSeen(first.answer)}`,
      ]
}

function repeats(exchanges: readonly Exchange[]): string[] {
  const there = exchanges.filter((exchange) => hadArrivedBefore(exchanges, exchange))
  return there.length === 0
    ? []
    : [`${there.length} records had arrived although the first answer was a 5xx or missing: the repetition got E002`]
}
