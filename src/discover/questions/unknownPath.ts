import { randomUUID } from 'node:crypto'
import { lineOf, nameOf, type Response } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const unknownPath: Question = {
  name: 'unknown-path',
  section: '4',
  asks: 'what a path at which nothing is served is answered',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeUnknownPath((await parts.get(`/api/v1/${randomUUID()}`)).answer)
  },
}

/** Where the API is not there, the daemon has to notice that it is not the record’s fault. Pure. */
export function judgeUnknownPath(seen: Response): Finding {
  const assumed = '404, 405 or 410'
  const contract = { unknown_path: String(seen.status) }
  if ([404, 405, 410].includes(seen.status)) return sure(nameOf(seen), lineOf(seen), { assumed, contract })
  return sure(nameOf(seen), lineOf(seen), {
    assumed,
    differs: true,
    contract,
    cannot: 'should the API move, records may be rejected, or held back, one by one, where everybody should wait',
  })
}
