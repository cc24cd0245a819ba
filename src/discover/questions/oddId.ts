import { resources } from '../../resources.ts'
import { isSuccess, lineOf, nameOf, type Response, type Seen, whyNoAnswer } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const oddId: Question = {
  name: 'odd-id',
  section: '4.3',
  asks: 'what an id with a slash, a percent sign, a blank and a letter beyond ASCII is answered',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const known = (await parts.sample(firstCallSample)).first
    const path = `${resources.data.path}/${encodeURIComponent(`odd/id %41 ü-${parts.run}`)}`
    return judgeOddId((await parts.get(path)).answer, known.answer)
  },
}

/** @param usual the answer to an unknown id without such characters. Pure */
export function judgeOddId(seen: Response, usual: Seen): Finding {
  const found = nameOf(seen)
  const unusual = whyNoAnswer(usual)
  if (unusual !== null) return unknown(`${lineOf(seen)}; an id without such characters: ${unusual}`)
  if (found === nameOf(usual)) return sure(found, `${lineOf(seen)}: as any unknown id`)
  const more =
    'ids with such characters do not get through to where ids are looked up; harmless unless the service gives some, or a mapping chooses them'
  return sure(found, `${lineOf(seen)}; ${isSuccess(seen) ? 'a success for an id that nobody gave' : more}`)
}
