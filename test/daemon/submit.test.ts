import { expect, test } from 'vitest'
import type { Answer } from '../../src/model/service.ts'
import type { Submission, UncertainPolicy } from '../../src/model/submission.ts'
import { noAnswer, response } from '../support/answers.ts'
import { submission } from '../support/submission.ts'
import { openAttempts } from './attempts.ts'

function setup({ answer = response(201, { transactionId: 'tx' }) as Answer, policy = 'hold' as UncertainPolicy } = {}) {
  const { attempts, sent } = openAttempts({
    answer,
    config: { uncertainPolicy: policy, serverErrorPolicy: 'retry' },
    nextPollDelayMs: (resource) => (resource === 'orders' ? 2_000 : 1_000),
  })
  return {
    sent,
    interpret: (of: Partial<Submission>) => attempts.interpretAnswer(submission(of), answer),
    submit: (of: Parameters<typeof submission>[0] = {}, isGood = () => true) =>
      attempts.submit(submission(of), { accessToken: 'token', mayLeave: isGood }),
  }
}

test('the stored body is sent once and unchanged, with the submission’s idempotency key', async () => {
  const { submit, sent } = setup()
  const { step, answer } = await submit({ body: '{"amount":1.10}', idempotencyKey: 'key' })
  expect(sent).toEqual([
    { request: { endpoint: 'submit', body: '{"amount":1.10}', idempotencyKey: 'key' }, accessToken: 'token' },
  ])
  expect(step.change).toMatchObject({ state: 'accepted', transactionId: 'tx', pollInMs: 1_000 })
  expect(answer).toMatchObject({ status: 201 })
})

test('an order is sent to the order endpoint, and polled on the schedule of orders', async () => {
  const { submit, sent } = setup({ answer: response(201, { orderId: 'order' }) })
  const { step } = await submit({ resource: 'orders' })
  expect(sent[0]?.request.endpoint).toBe('order')
  expect(step.change).toMatchObject({ state: 'accepted', transactionId: 'order', pollInMs: 2_000 })
})

test('a process that was suspended for too long does not send, and uses up nothing', async () => {
  const { submit, sent } = setup()
  const worked = await submit({}, () => false)
  expect(sent).toEqual([])
  expect(worked).toEqual({
    step: {
      change: { state: 'queued', dueInMs: 0 },
      cause: 'never_sent',
      message: expect.stringContaining('deadline'),
      pause: null,
    },
    answer: null,
    breach: null,
  })
})

test('a request that its host could not send uses up nothing, and the event says what the host lacks', async () => {
  const { submit } = setup({ answer: noAnswer({ sent: false, cause: 'host' }) })
  const { step, answer } = await submit()
  expect(answer).toBeNull()
  expect(step).toEqual({
    change: { state: 'queued', dueInMs: 0 },
    cause: 'never_sent',
    message: 'never sent: the connection was lost',
    pause: null,
  })
})

test('an answer that breaks the contract is reported as a breach', async () => {
  const { submit } = setup({ answer: response(200, { status: 'accepted' }) })
  expect(await submit()).toMatchObject({ breach: 'missing_id', step: { change: { state: 'uncertain' } } })
})

test('a rejection is no breach', async () => {
  expect(await setup({ answer: response(400, { code: 'E001' }) }).submit()).toMatchObject({
    breach: null,
    step: { change: { state: 'rejected', errorCode: 'E001' } },
  })
})

test.each<[UncertainPolicy, boolean, object]>([
  ['hold', true, { state: 'uncertain' }],
  ['resend', true, { state: 'queued', inDoubt: true }],
  ['probe', true, { state: 'sending' }],
  ['probe', false, { state: 'uncertain' }],
])('an attempt in doubt under policy %s (the mapping sends its own id: %s) becomes %o', (policy, sendsOwnId, change) => {
  const answer = noAnswer({ sent: true, cause: 'timeout' })
  expect(setup({ answer, policy }).interpret({ sendsOwnId }).step.change).toMatchObject(change)
})

test('earlier attempts in the ledger change the verdict on E002, 401 and 500', () => {
  const duplicate = setup({ answer: response(409, { code: 'E002' }) })
  expect(duplicate.interpret({}).step.change).toMatchObject({ state: 'queued', idempotencyKey: expect.any(String) })
  expect(duplicate.interpret({ inDoubt: true }).step.change).toMatchObject({ state: 'uncertain' })
  const unauthorized = setup({ answer: response(401) })
  expect(unauthorized.interpret({}).step.change).toMatchObject({ repeatedAfter401: true })
  expect(unauthorized.interpret({ repeatedAfter401: true }).step.pause).toMatchObject({ reason: 'unauthorized' })
  const broken = setup({ answer: response(500) })
  expect(broken.interpret({ serverErrors: 2 }).step.change).toMatchObject({ state: 'queued', serverErrors: 3 })
  expect(broken.interpret({ serverErrors: 3 }).step.change).toMatchObject({ state: 'failed' })
})

test('E003 beside an id is remembered: the service may have the record, so a later E002 is uncertain', () => {
  const withId = setup({ answer: response(200, { transactionId: 'tx', status: 'failed', errorCode: 'E003' }) })
  expect(withId.interpret({}).step).toMatchObject({
    change: { state: 'queued', answeredUnavailable: true },
    pause: { reason: 'unavailable' },
  })
})
