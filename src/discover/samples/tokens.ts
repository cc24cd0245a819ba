import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import type { Exchange } from '../exchange.ts'
import type { Sample } from '../question.ts'
import { firstCallSample } from './firstCall.ts'
import { accessTokenIn, tokenSample } from './token.ts'

/** Calls around a second token, each for an unknown id, in quick succession: what of it the limit counts. */
export interface Tokens {
  /** With the first token. */
  before: Exchange
  /** The same of the other half of the service. */
  beside: Exchange
  renewal: Exchange
  /** With the second token; null where the issuer gave none. */
  second: Exchange | null
  /** With the first one again. */
  first: Exchange
}

export const tokensSample: Sample<Tokens> = {
  name: 'calls with a second token',
  requestsMax: 5,
  recordsMax: 0,
  samples: [tokenSample, firstCallSample],
  async take(parts) {
    await parts.sample(firstCallSample)
    const unknown = (path: string) => `${path}/${randomUUID()}`
    const before = await parts.get(unknown(resources.data.path))
    const beside = await parts.get(unknown(resources.orders.path))
    const renewal = await parts.askToken(parts.config.service.clientSecret)
    const token = accessTokenIn(renewal.answer)
    const second = token === null ? null : await parts.get(unknown(resources.data.path), { accessToken: token })
    return { before, beside, renewal, second, first: await parts.get(unknown(resources.data.path)) }
  },
}
