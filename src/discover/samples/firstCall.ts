import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import type { Exchange } from '../exchange.ts'
import type { Sample } from '../question.ts'

/** A question for a transaction that does not exist, with a good token: the first call, which changes nothing. */
export const firstCallSample: Sample<Exchange> = {
  name: 'a question for an unknown transaction',
  requestsMax: 1,
  recordsMax: 0,
  samples: [],
  take: (parts) => parts.get(`${resources.data.path}/${randomUUID()}`),
}
