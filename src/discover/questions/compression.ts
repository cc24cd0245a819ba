import type { Exchange } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const compression: Question = {
  name: 'compression',
  section: '1',
  asks: 'whether answers are compressed though nobody asked for it',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeCompression(parts.exchanges())
  },
}

/** Pure. */
export function judgeCompression(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: Accept-Encoding is identity'
  const encodings = exchanges.flatMap(({ answer }) =>
    answer.kind === 'response' ? [answer.headers['content-encoding']?.trim().toLowerCase() || 'identity'] : [],
  )
  const [encoding] = encodings.filter((each) => each !== 'identity')
  if (encoding === undefined) return sure('none', `${encodings.length} answers`, { assumed })
  return sure(encoding, 'an answer was compressed though Accept-Encoding was identity', {
    assumed,
    differs: true,
    cannot:
      'the daemon does not unpack answers: a record whose answer is compressed becomes uncertain. Have the service, or the proxy before it, heed Accept-Encoding',
  })
}
