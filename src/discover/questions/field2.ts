import { isSuccess, lineOf, type Response } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedShape, submissionSample, submit } from '../samples/submission.ts'

export const field2: Question = {
  name: 'field2',
  section: '2.2',
  asks: 'whether field2 may be empty, or have 1,000 characters',
  requestsMax: 2,
  recordsMax: 2,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    const withText = async (text: string) => (await submit(parts, shape, text, { data: { field2: text } })).answer
    return judgeField2(await withText(''), await withText(`outboxd discover ${parts.run} `.padEnd(1_000, 'x')))
  },
}

/** Pure. */
export function judgeField2(empty: Response, long: Response): Finding {
  const assumed = 'any text'
  const limits = [isSuccess(empty) ? null : 'not empty', isSuccess(long) ? null : 'below 1,000 characters'].filter(
    (each) => each !== null,
  )
  const why = `empty: ${lineOf(empty)}; 1,000 characters: ${lineOf(long)}`
  if (limits.length === 0) return sure('any text', why, { assumed })
  const advice = [
    'say so in the mapping (required, maxLength), so that such a record is rejected before it costs a request',
  ]
  return sure(limits.join(', '), why, { assumed, differs: true, advice })
}
