import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Repeats, recognised, repeatsSample } from '../samples/repeats.ts'

export const idempotencyHeader: Question = {
  name: 'idempotency-header',
  section: '4.2',
  asks: 'in which header a key is honoured',
  requestsMax: 0,
  recordsMax: 0,
  samples: [repeatsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    return judgeIdempotencyHeader(await parts.sample(repeatsSample), parts.config.service.idempotencyHeader)
  },
}

/** Pure. */
export function judgeIdempotencyHeader({ header, first, again, otherKey }: Repeats, assumed: string): Finding {
  const byKey = recognised(first, again)
  if (byKey === null) return unknown('a repeated request was not answered', { assumed })
  if (byKey === 'no')
    return sure('none', 'neither Idempotency-Key nor its usual other names are looked at', { assumed })
  if (recognised(first, otherKey) !== 'no')
    return sure('none', 'a record is known by its content, under any key', { assumed })
  const why = `a record that was sent again under the same ${header} was recognised, under another it was not`
  const set = [{ variable: 'IDEMPOTENCY_HEADER', value: header, why }]
  return sure(header, why, { assumed, differs: header.toLowerCase() !== assumed.toLowerCase(), set })
}
