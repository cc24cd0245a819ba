import { endedAtMs } from '../exchange.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { hasEnded, type Life, lifeSample, statusIn } from '../samples/life.ts'
import { showMs } from '../showMs.ts'

export const processingTime: Question = {
  name: 'processing-time',
  section: '3.1',
  asks: 'how long one transaction takes',
  requestsMax: 0,
  recordsMax: 0,
  samples: [lifeSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    return judgeProcessingTime(await parts.sample(lifeSample))
  },
}

/** Between the last poll at which it was not done and the first at which it was. Pure. */
export function judgeProcessingTime({ acceptedAtMs, polls }: Life): Finding {
  const done = polls.find((poll) => hasEnded(statusIn(poll)))
  const before = polls.findLast((poll) => !hasEnded(statusIn(poll)))
  const assumed = 'any: it is learnt'
  if (done === undefined) {
    const waitedMs = before === undefined ? 0 : endedAtMs(before) - acceptedAtMs
    return unknown(`one was not done after ${showMs(waitedMs)}`, { assumed })
  }
  const mostMs = endedAtMs(done) - acceptedAtMs
  const leastMs = before === undefined ? 0 : Math.max(0, before.startedAtMs - acceptedAtMs)
  return likely(`${showMs(leastMs)} to ${showMs(mostMs)}`, 'one transaction; others may take otherwise', { assumed })
}
