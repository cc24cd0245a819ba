import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { lineOf, nameOf, type Response } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const badToken: Question = {
  name: 'bad-token',
  section: '5.4',
  asks: 'what a call with a token that nobody gave is answered, and what its WWW-Authenticate says',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const path = `${resources.data.path}/${randomUUID()}`
    return judgeBadToken((await parts.get(path, { accessToken: `not-a-token-${parts.run}` })).answer)
  },
}

/** A 401 is what the daemon renews its token at. Pure. */
export function judgeBadToken(seen: Response): Finding {
  const assumed = '401'
  const challenge = seen.headers['www-authenticate']
  const why = `${lineOf(seen)}; ${challenge === undefined ? 'without WWW-Authenticate' : `WWW-Authenticate: ${challenge}`}`
  const contract = { bad_token: String(seen.status) }
  if (seen.status === 401) return sure('401', why, { assumed, contract })
  return sure(nameOf(seen), why, {
    assumed,
    differs: true,
    contract,
    cannot:
      seen.status < 300
        ? 'the service takes a token that nobody gave: it does not check them'
        : 'the daemon renews a token before its end, or after a 401: one that the service ends sooner is used until its time is up, and requests fail meanwhile. Set TOKEN_REFRESH_SECONDS so that it is renewed earlier',
  })
}
