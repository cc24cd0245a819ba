import { type Exchange, lineOf } from '../exchange.ts'
import { type Finding, notAsked, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { ownIdsSample } from '../samples/ownIds.ts'
import { repeatsSample } from '../samples/repeats.ts'

export const e002: Question = {
  name: 'e002',
  section: '7.2',
  asks: 'the HTTP status of E002, where a key or an id that is used twice brings it about',
  requestsMax: 0,
  recordsMax: 0,
  samples: [repeatsSample, ownIdsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const { again, otherKey } = await parts.sample(repeatsSample)
    const ids = await parts.sample(ownIdsSample)
    return judgeE002([again, otherKey, ids.again].filter((each) => each !== null))
  },
}

/** Pure. */
export function judgeE002(repeated: readonly Exchange[]): Finding {
  const assumed = 'any: its code is what counts'
  const seen = repeated
    .map(({ answer }) => answer)
    .find((answer) => answer.kind === 'response' && answer.code === 'E002')
  if (seen?.kind !== 'response') return notAsked('nothing that was sent twice was called a duplicate', { assumed })
  return sure(String(seen.status), lineOf(seen), { assumed, contract: { e002: String(seen.status) } })
}
