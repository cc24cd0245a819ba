import fc from 'fast-check'
import type { ClaimedSubmission } from '../../src/model/dispatch.ts'
import type { Submission } from '../../src/model/submission.ts'

type Sending = Submission & Pick<ClaimedSubmission, 'body'>

/** Makes a submission that is being sent for the first time, with `given` on top. */
export function submission(given: Partial<Sending> = {}): Sending {
  return {
    id: '00000000-0000-7000-8000-000000000001',
    outboxId: '1',
    type: 'data',
    key: null,
    resource: 'data',
    body: '{"amount":1.10}',
    tracked: true,
    sendsOwnId: false,
    recordedMs: 0,
    state: 'sending',
    revision: 1,
    attempt: 1,
    claimId: '00000000-0000-7000-8000-000000000002',
    idempotencyKey: '00000000-0000-7000-8000-000000000003',
    inDoubt: false,
    serverErrors: 0,
    renewedKeys: 0,
    answeredUnavailable: false,
    resubmissions: 0,
    repeatedAfter401: false,
    transactionId: null,
    idByPerson: false,
    probing: false,
    ageMs: 0,
    polls: 0,
    fruitless: 0,
    unknownForMs: null,
    notDoneMs: null,
    ...given,
  }
}

/** Any message of a service, cut anywhere, even with NUL or half a surrogate pair. */
export const anyMessage = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) })

/** The columns that a submission's history may have set. */
export const anyHistory = fc.record({
  tracked: fc.boolean(),
  inDoubt: fc.boolean(),
  serverErrors: fc.nat(4),
  renewedKeys: fc.nat(4),
  answeredUnavailable: fc.boolean(),
  resubmissions: fc.nat(4),
  repeatedAfter401: fc.boolean(),
  polls: fc.nat(100),
  fruitless: fc.nat(100),
  unknownForMs: fc.option(fc.nat(1_000_000), { nil: null }),
  notDoneMs: fc.option(fc.nat(1_000_000), { nil: null }),
})
