import type { Question } from '../question.ts'
import { heldTokenSample } from '../samples/heldToken.ts'
import { judgeTokenHeld } from './tokenHeld.ts'

export const tokenLifetime: Question = {
  name: 'token-lifetime',
  section: '5.3',
  asks: 'how long a token is really good (held to its end, 75 minutes at most)',
  requestsMax: 0,
  recordsMax: 0,
  samples: [heldTokenSample],
  needs: ['slow'],
  harmless: false,
  async run(parts) {
    return judgeTokenHeld(parts.exchanges(), parts.config.service)
  },
}
