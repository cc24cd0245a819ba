import { resources } from '../../resources.ts'
import type { AnsweredExchange } from '../exchange.ts'
import type { Sample } from '../question.ts'
import { acceptedShape, idIn, submissionSample, submit } from './submission.ts'

/** A record that brings its own transactionId; where the service took that, another record with the same. */
export interface OwnIds {
  id: string
  first: AnsweredExchange
  again: AnsweredExchange | null
}

export const ownIdsSample: Sample<OwnIds> = {
  name: 'a record with an id of its own',
  requestsMax: 2,
  recordsMax: 2,
  samples: [submissionSample],
  async take(parts) {
    const shape = await acceptedShape(parts)
    const id = `outboxd-${parts.run}`
    const withId = (what: string) => submit(parts, shape, what, { beside: { [resources.data.idField]: id } })
    const first = await withId('a record that brings its id')
    return { id, first, again: idIn(first) === id ? await withId('another record of the same id') : null }
  },
}
