import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import type { Exchange } from '../exchange.ts'
import type { Sample } from '../question.ts'
import { firstCallSample } from './firstCall.ts'
import { accessTokenIn, tokenSample } from './token.ts'

/** Calls around a second token in quick succession: what of it the limit counts. */
export interface Tokens {
  /** A POST that is refused, as its body is empty. */
  post: Exchange
  /** A question for a transaction. */
  poll: Exchange
  /** A POST of an order that is refused. */
  order: Exchange
  renewal: Exchange
  /** A refused POST with the second token; null where the issuer gave none. */
  second: Exchange | null
  /** One with the first again. */
  first: Exchange
}

export const tokensSample: Sample<Tokens> = {
  name: 'calls around a second token, with POSTs of an empty body',
  requestsMax: 6,
  recordsMax: 0,
  samples: [tokenSample, firstCallSample],
  async take(parts) {
    const empty = (accessToken?: string) =>
      parts.postWhatever(resources.data.path, '{}', accessToken === undefined ? {} : { accessToken })
    const post = await empty()
    const poll = await parts.getWhatever(`${resources.data.path}/${randomUUID()}`)
    const order = await parts.postWhatever(resources.orders.path, '{}')
    const renewal = await parts.askToken(parts.config.service.clientSecret)
    const token = accessTokenIn(renewal.answer)
    return { post, poll, order, renewal, second: token === null ? null : await empty(token), first: await empty() }
  },
}
