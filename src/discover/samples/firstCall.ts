import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { type Exchange, isSuccess } from '../exchange.ts'
import { judgeAddress } from '../judgeAddress.ts'
import { type Sample, Stopped } from '../question.ts'

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
export const firstExchangeSample: Sample<FirstCall> = {
  name: 'a question for an unknown transaction',
  requestsMax: 2,
  recordsMax: 0,
  samples: [],
  async take(parts) {
    const first = await parts.getWhatever(`${resources.data.path}/${randomUUID()}`)
    const beside = isSuccess(first.answer) ? await parts.getWhatever(`/api/v1/${randomUUID()}`) : null
    const { stop } = judgeAddress(first.answer, beside?.answer ?? null)
    if (stop !== null) parts.stop(stop)
    return { first, beside }
  },
}

/** The same, where the service answered and more can be asked: nothing is judged by what something else answers. */
export const firstCallSample: Sample<FirstCall> = {
  name: 'a first call that is let in',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstExchangeSample],
  async take(parts) {
    const call = await parts.sample(firstExchangeSample)
    const { stop } = judgeAddress(call.first.answer, call.beside?.answer ?? null)
    if (stop !== null) throw new Stopped(stop)
    return call
  },
}
