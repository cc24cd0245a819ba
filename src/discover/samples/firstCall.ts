import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { type Exchange, isSuccess } from '../exchange.ts'
import { judgeAddress } from '../judgeAddress.ts'
import type { Sample } from '../question.ts'

/** What answers at the address of the API. */
export interface FirstCall {
  first: Exchange
  /** A question for a path at which nothing is served, where the first was answered with a success. */
  beside: Exchange | null
}

/**
 * A question for a transaction that does not exist, with a good token, which changes nothing. Where something else than the
 * service answers, or does not let us in, nothing more is sent.
 */
export const firstCallSample: Sample<FirstCall> = {
  name: 'a question for an unknown transaction',
  requestsMax: 2,
  recordsMax: 0,
  samples: [],
  async take(parts) {
    const first = await parts.get(`${resources.data.path}/${randomUUID()}`)
    const beside = isSuccess(first.answer) ? await parts.get(`/api/v1/${randomUUID()}`) : null
    const { stop } = judgeAddress(first.answer, beside?.answer ?? null)
    if (stop !== null) parts.stop(stop)
    return { first, beside }
  },
}
