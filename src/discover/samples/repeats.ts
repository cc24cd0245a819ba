import { randomUUID } from 'node:crypto'
import type { Exchange } from '../exchange.ts'
import type { Sample } from '../question.ts'
import { acceptedShape, submissionSample, submit } from './submission.ts'

/** One request twice under one key, and once more under another. */
export interface Repeats {
  first: Exchange
  again: Exchange
  otherKey: Exchange
}

/** As the daemon sends it: `Idempotency-Key` with the uuid in quotes. */
export const repeatsSample: Sample<Repeats> = {
  name: 'a record twice under one idempotency key',
  requestsMax: 3,
  recordsMax: 3,
  samples: [submissionSample],
  async take(parts) {
    const shape = await acceptedShape(parts)
    const [one, other] = [randomUUID(), randomUUID()]
    const under = (key: string) =>
      submit(parts, shape, 'one record, repeated', { headers: { 'idempotency-key': `"${key}"` } })
    return { first: await under(one), again: await under(one), otherKey: await under(other) }
  },
}
