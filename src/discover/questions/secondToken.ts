import { isRefusal, isSuccess, lineOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { accessTokenIn, tokenSample } from '../samples/token.ts'
import { type Tokens, tokensSample } from '../samples/tokens.ts'

export const secondToken: Question = {
  name: 'second-token',
  section: '4.1',
  asks: 'whether a token stays valid when the client is given another',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokenSample, tokensSample],
  needs: [],
  harmless: false,
  async run(parts) {
    const { accessToken } = await parts.sample(tokenSample)
    return judgeSecondToken(await parts.sample(tokensSample), accessToken)
  },
}

/** Pure. */
export function judgeSecondToken({ renewal, first }: Tokens, accessToken: string): Finding {
  const assumed = 'both are valid'
  const other = accessTokenIn(renewal.answer)
  if (other === null) return unknown(`the issuer gave no second one: ${lineOf(renewal.answer)}`, { assumed })
  if (other === accessToken) return sure('the same token', 'the issuer gave the same one again', { assumed })
  if (isSuccess(first.answer) || isRefusal(first.answer))
    return sure('both valid', 'the first was taken after the second had come', { assumed })
  if (first.answer.kind === 'response' && first.answer.status === 401)
    return sure('ends the first', `the first was answered ${lineOf(first.answer)} once there was a second`, {
      assumed,
      differs: true,
      cannot:
        'several instances, or outboxd check beside a daemon, end each other’s tokens: each such call is repeated with a new one, and pays twice. Run one instance',
    })
  return unknown(lineOf(first.answer), { assumed })
}
