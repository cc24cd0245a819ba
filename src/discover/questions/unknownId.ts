import { isSuccess, lineOf, nameOf, type Seen, whyNoAnswer } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const unknownId: Question = {
  name: 'unknown-id',
  section: '4.3',
  asks: 'what a question for a transaction that does not exist is answered',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeUnknownId((await parts.sample(firstCallSample)).first.answer, 'status_unknown')
  },
}

/** 404 alone tells the daemon that a transaction is gone. Pure. @param pair its name in the contract */
export function judgeUnknownId(seen: Seen, pair: 'status_unknown' | 'order_status_unknown'): Finding {
  const assumed = '404'
  const unanswered = whyNoAnswer(seen)
  if (seen.kind === 'no-answer' || unanswered !== null) return unknown(unanswered ?? lineOf(seen), { assumed })
  const contract = { [pair]: String(seen.status) }
  const found = nameOf(seen)
  if (seen.status === 404) return sure(found, lineOf(seen), { assumed, contract })
  return sure(found, lineOf(seen), {
    assumed,
    differs: true,
    contract,
    cannot: isSuccess(seen)
      ? 'a transaction that the service has lost looks as if it were there: it is asked for until somebody looks (outboxd_problem stuck)'
      : `a transaction that the service has lost is asked for, less and less often, and never called failed: after STUCK_AFTER_SECONDS it is a problem for a person`,
  })
}
