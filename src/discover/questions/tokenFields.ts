import { sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { tokenSample } from '../samples/token.ts'

export const tokenFields: Question = {
  name: 'token-fields',
  section: '2.1',
  asks: 'what else the answer to a token request has',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokenSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const { exchange } = await parts.sample(tokenSample)
    const json = exchange.answer.kind === 'response' ? exchange.answer.json : null
    const more = Object.keys(Object(json)).filter(
      (name) => !['access_token', 'token_type', 'expires_in'].includes(name),
    )
    return more.length === 0
      ? sure('none', 'it has the three fields of the interface')
      : sure(more.join(', '), 'it has these beside the three of the interface; the daemon ignores them')
  },
}
