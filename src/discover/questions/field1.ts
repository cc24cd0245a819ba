import { isSuccess, lineOf, nameOf } from '../exchange.ts'
import { sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedShape, submissionSample, submit } from '../samples/submission.ts'

export const field1: Question = {
  name: 'field1',
  section: '2.2',
  asks: 'what a field1 beyond value1, value2 and value3 is answered',
  requestsMax: 1,
  recordsMax: 1,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    const { answer } = await submit(parts, shape, 'another field1', { data: { field1: 'value4' } })
    const assumed = '400'
    if (isSuccess(answer)) return sure('taken', lineOf(answer), { assumed, differs: true })
    return sure(nameOf(answer), lineOf(answer), { assumed, differs: answer.status !== 400 })
  },
}
