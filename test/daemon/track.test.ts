import { expect, test } from 'vitest'
import type { Answer } from '../../src/model/service.ts'
import type { Submission } from '../../src/model/submission.ts'
import { response } from '../support/answers.ts'
import { submission } from '../support/submission.ts'
import { openAttempts, refusedBefore } from './attempts.ts'

const accepted: Partial<Submission> = {
  state: 'accepted',
  transactionId: 'tx',
  claimId: null,
  ageMs: 5_000,
}

function setup(answer: Answer = response(200, { transactionId: 'tx', status: 'pending' })) {
  const asked: [string, number][] = []
  const { attempts, sent } = openAttempts({
    answer,
    config: { unavailablePauseMs: 300_000, stuckAfterMs: 86_400_000 },
    nextPollDelayMs(resource, notDoneAgeMs) {
      asked.push([resource, notDoneAgeMs])
      return 1_234
    },
  })
  return {
    sent,
    asked,
    ask: () =>
      attempts.ask(
        { requestId: '1', resource: 'data', transactionId: 'tx' },
        { accessToken: 'token', mayLeave: () => true },
      ),
    track: (of: Partial<Submission> = {}, isGood = () => true) =>
      attempts.poll(submission({ ...accepted, ...of }), { accessToken: 'token', mayLeave: isGood }),
  }
}

test('a poll is one GET for the transaction, without an idempotency key', async () => {
  const { track, sent } = setup()
  await track()
  expect(sent).toEqual([{ request: { endpoint: 'status', body: 'tx', idempotencyKey: null }, accessToken: 'token' }])
})

test('an order is polled at the order endpoint', async () => {
  const { track, sent } = setup(response(200, { orderId: 'tx', status: 'pending' }))
  await track({ resource: 'orders' })
  expect(sent[0]?.request).toMatchObject({ endpoint: 'order_status', body: 'tx' })
})

test('a probe asks for the submission’s own id', async () => {
  const { track, sent } = setup()
  await track({ state: 'sending', probing: true, transactionId: null, id: 'me' })
  expect(sent[0]?.request.body).toBe('me')
})

test('after `pending` the schedule gives the time of the next poll, by the age at which this one left', async () => {
  const { track, asked } = setup()
  const { step } = await track()
  expect(asked).toEqual([['data', 5_000]])
  expect(step.change).toMatchObject({ state: 'accepted', pollInMs: 1_234, notDoneMs: 5_000, polls: 1 })
})

test('a stuck transaction is polled after an hour as a rare poll, and any other as planned', async () => {
  const day = 86_400_000
  const pending = (await setup().track({ ageMs: day })).step
  expect(pending.change).toMatchObject({ state: 'accepted', pollInMs: 3_600_000, polledRarely: true })
  const useless = (await setup(response(410)).track({ ageMs: day, fruitless: 50 })).step
  expect(useless.change).toMatchObject({ pollInMs: 3_600_000, polledRarely: true })
  const probed = { state: 'sending', probing: true } as const
  const unanswered = (await setup(response(500)).track({ ...probed, ageMs: day, fruitless: 50 })).step
  expect(unanswered.change).toMatchObject({ state: 'sending', pollInMs: 3_600_000, polledRarely: true })
  expect((await setup().track({ ageMs: day - 1 })).step.change).toMatchObject({ polledRarely: false })
  expect((await setup().track({ ageMs: day }, () => false)).step.change).toMatchObject({ pollInMs: 0 })
})

test('a completed transaction teaches its age at the answer, and the result keeps its digits', async () => {
  const text = '{"transactionId":"tx","status":"completed","result":{"total":1.10}}'
  const { step } = await setup(response(200, text)).track()
  expect(step.change).toMatchObject({ state: 'completed', doneMs: 5_012, result: '{"total":1.10}' })
})

test('failed with E003: the record is submitted again, three times at most', async () => {
  const { track } = setup(response(200, { transactionId: 'tx', status: 'failed', errorCode: 'E003' }))
  expect((await track({ resubmissions: 2 })).step.change).toMatchObject({
    state: 'queued',
    dueInMs: 300_000,
    idempotencyKey: expect.any(String),
  })
  expect((await track({ resubmissions: 3 })).step.change).toMatchObject({ state: 'failed', errorCode: 'E003' })
})

test('failed with E002 after an attempt in doubt: uncertain', async () => {
  const { track } = setup(response(200, { transactionId: 'tx', status: 'failed', errorCode: 'E002' }))
  expect((await track({ inDoubt: true })).step.change).toMatchObject({ state: 'uncertain', errorCode: 'E002' })
})

test('the answer of another transaction is a breach and ends nothing', async () => {
  const worked = await setup(response(200, { transactionId: 'other', status: 'completed' })).track()
  expect(worked).toMatchObject({ breach: 'other_transaction', step: { change: { state: 'accepted' } } })
})

test('earlier polls in the ledger change the verdict on 401, 404 and 500', async () => {
  const unauthorized = setup(response(401))
  expect((await unauthorized.track()).step.change).toMatchObject({ repeatedAfter401: true })
  expect((await unauthorized.track({ id: refusedBefore })).step.pause).toMatchObject({ reason: 'unauthorized' })
  const unknown = setup(response(404))
  expect((await unknown.track({ unknownForMs: 599_999 })).step.change).toMatchObject({
    state: 'accepted',
    unknown: true,
  })
  expect((await unknown.track({ unknownForMs: 600_000, fruitless: 5 })).step.change).toMatchObject({ state: 'failed' })
  expect((await setup(response(500)).track({ fruitless: 3 })).step.change).toMatchObject({ pollInMs: 8_000 })
})

test('a process that was suspended for too long does not poll', async () => {
  const { track, sent } = setup()
  const worked = await track({}, () => false)
  expect(sent).toEqual([])
  expect(worked).toMatchObject({ answer: null, step: { change: { state: 'accepted', pollInMs: 0 }, pause: null } })
})

test('a question about a transaction that failed with E003 shows that the service works', async () => {
  const { ask, sent } = setup(response(200, { transactionId: 'tx', status: 'failed', errorCode: 'E003' }))
  expect(await ask()).toMatchObject({ pause: null })
  expect(sent[0]?.request).toMatchObject({ endpoint: 'status', body: 'tx' })
  expect(await setup(response(503, { code: 'E003' })).ask()).toMatchObject({ pause: { reason: 'unavailable' } })
})
