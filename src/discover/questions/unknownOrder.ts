import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'
import { judgeUnknownId } from './unknownId.ts'

export const unknownOrder: Question = {
  name: 'unknown-order',
  section: '4.5',
  asks: 'what a question for an order that does not exist is answered',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const { answer } = await parts.get(`${resources.orders.path}/${randomUUID()}`)
    return judgeUnknownId(answer, 'order_status_unknown')
  },
}
