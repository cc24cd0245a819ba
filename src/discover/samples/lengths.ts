import type { AnsweredExchange } from '../exchange.ts'
import type { Sample } from '../question.ts'
import { acceptedShape, submissionSample, submit } from './submission.ts'

/** Records for customers whose ids are as long as may be, by different ways to count, and too long by all. */
export interface Lengths {
  ten: AnsweredExchange
  eleven: AnsweredExchange
  /** Ten characters that have two bytes each. */
  bytes: AnsweredExchange
  /** Ten characters that are two halves each where a language counts as JavaScript does. */
  halves: AnsweredExchange
}

export const lengthsSample: Sample<Lengths> = {
  name: 'customer ids of 10 and 11 characters',
  requestsMax: 4,
  recordsMax: 4,
  samples: [submissionSample],
  async take(parts) {
    const shape = await acceptedShape(parts)
    const customer = parts.given.customer ?? ''
    const withId = (customerId: string) => submit(parts, shape, 'a customer id at the limit', { customerId })
    return {
      ten: await withId(customer.padEnd(10, '0').slice(0, 10)),
      eleven: await withId(customer.padEnd(11, '0').slice(0, 11)),
      bytes: await withId('é'.repeat(10)),
      halves: await withId('𝒳'.repeat(10)),
    }
  },
}
