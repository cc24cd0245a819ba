import { fieldOf, type Seen } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { hasEnded, lifeSample, statusIn } from '../samples/life.ts'

export const result: Question = {
  name: 'result',
  section: '2.4',
  asks: 'the shape of result, once a transaction is processed',
  requestsMax: 0,
  recordsMax: 0,
  samples: [lifeSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const last = (await parts.sample(lifeSample)).polls.findLast((poll) => hasEnded(statusIn(poll)))
    return last === undefined ? unknown('the transaction had not ended', { assumed }) : judgeResult(last.answer)
  },
}

const assumed = 'any JSON, or none'

/** Pure. */
export function judgeResult(seen: Seen): Finding {
  const json = seen.kind === 'response' ? fieldOf(seen.json, 'result') : undefined
  return json === undefined || json === null
    ? sure('none', 'the answer has no result', { assumed })
    : sure(typeOf(json), `result is ${JSON.stringify(json).slice(0, 200)}; it is kept as it came`, { assumed })
}

function typeOf(json: unknown): string {
  if (Array.isArray(json)) return 'list'
  if (JSON.isRawJSON(json)) return 'number'
  return typeof json === 'object' && json !== null ? `object: ${Object.keys(json).join(', ')}` : typeof json
}
