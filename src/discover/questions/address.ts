import { judgeAddress } from '../judgeAddress.ts'
import type { Question } from '../question.ts'
import { firstExchangeSample } from '../samples/firstCall.ts'

export const address: Question = {
  name: 'address',
  section: '5.6',
  asks: 'whether this machine’s address may call the API, and what answers there',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstExchangeSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const { first, beside } = await parts.sample(firstExchangeSample)
    return judgeAddress(first.answer, beside?.answer ?? null).finding
  },
}
