import { isSuccess, lineOf, nameOf } from '../exchange.ts'
import { sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { lengthsSample } from '../samples/lengths.ts'

export const longCustomer: Question = {
  name: 'long-customer',
  section: '2.2',
  asks: 'whether a customerId that is too long is refused with E001, or without a code',
  requestsMax: 0,
  recordsMax: 0,
  samples: [lengthsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const { answer } = (await parts.sample(lengthsSample)).eleven
    const assumed = '400, with or without E001'
    if (isSuccess(answer)) return sure('taken', lineOf(answer), { assumed, differs: true })
    return sure(nameOf(answer), `${lineOf(answer)}: the record would be rejected`, {
      assumed,
      differs: answer.status !== 400,
    })
  },
}
