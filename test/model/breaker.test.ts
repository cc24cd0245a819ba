import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Breaker,
  type BreakerStep,
  closedBreaker,
  createPauseBackoff,
  decideBreaker,
  type LostTrial,
  lostTrialAnswer,
  moveOpenerBehind,
  type Opening,
} from '../../src/model/breaker.ts'
import type { BreakerAnswer, BreakerSign, RequestPurpose } from '../../src/model/dispatch.ts'
import type { PauseToRaise } from '../../src/model/service.ts'
import type { Change, Submission } from '../../src/model/submission.ts'
import { fails } from '../support/breaker.ts'
import { asChange, type GivenChange } from '../support/change.ts'
import { submission } from '../support/submission.ts'

const backoff = createPauseBackoff({ unavailablePauseMs: 300_000, unauthorizedPauseMs: 60_000 })
const works: BreakerSign = { kind: 'works' }
const unknown: BreakerSign = { kind: 'unknown' }

const refusedPost = fails('unavailable', { isOfSubmission: true })
const silentPost = fails('unreachable', { isOfSubmission: true, isInDoubt: true })
const forbiddenGet = fails('unauthorized', { isForbiddenGet: true })

const halfOpen = (given: Partial<Breaker> = {}): Breaker => ({
  ...closedBreaker,
  state: 'half_open',
  trial: '7',
  ...given,
})
const isOpen: Breaker = { ...closedBreaker, state: 'open' }
const ofSubmission = halfOpen({ isOfSubmission: true })

/** The answer to the trial, unless the breaker has a different one. */
const answer = (request: RequestPurpose, sign: BreakerSign, requestId: string | null = '7'): BreakerAnswer => ({
  request,
  requestId,
  submissionId: request === 'submission' || request === 'poll' ? 'record' : null,
  sign,
})
const decide = (breaker: Breaker, ...given: Parameters<typeof answer>) =>
  decideBreaker(breaker, answer(...given), backoff)

const stays = { kind: 'stays' }
const closes = { kind: 'closes' }
const nextIsPost = { kind: 'tries-again', hasGetWorked: true }
const again = { kind: 'tries-again', hasGetWorked: false }
const opens = (given: Partial<Opening>) => ({ kind: 'opens', ...given })

test.each<[string, Breaker, RequestPurpose, BreakerSign, object]>([
  // Closed: one answer that fails is enough.
  ['closed, a submission works', closedBreaker, 'submission', works, stays],
  ['closed, a poll works', closedBreaker, 'poll', works, stays],
  ['closed, nothing is known of a submission', closedBreaker, 'submission', unknown, stays],
  [
    'closed, a submission is refused',
    closedBreaker,
    'submission',
    refusedPost,
    opens({ level: 0, forMs: 300_000, openedBy: 'record', isOfSubmission: true, isInDoubt: false, doubts: 0 }),
  ],
  [
    'closed, submissions are not answered',
    closedBreaker,
    'submission',
    silentPost,
    opens({ forMs: 1_000, isOfSubmission: true, isInDoubt: true, doubts: 0 }),
  ],
  [
    'closed, a poll is refused',
    closedBreaker,
    'poll',
    forbiddenGet,
    opens({ openedBy: 'record', isOfSubmission: false }),
  ],
  [
    'closed, a connection fails, which is the fault of no record',
    closedBreaker,
    'submission',
    fails('unreachable', { isOfRecord: false }),
    opens({ openedBy: null, forMs: 1_000 }),
  ],
  [
    'closed, a token is refused',
    closedBreaker,
    'token',
    fails('unauthorized'),
    opens({ openedBy: null, forMs: 60_000 }),
  ],

  // Open: what was on the wire changes nothing.
  ['open, a submission is refused', isOpen, 'submission', refusedPost, stays],
  ['open, a submission works', isOpen, 'submission', works, stays],
  ['open, a poll is refused', isOpen, 'poll', forbiddenGet, stays],
  ['open, a token is refused before the pause is over', isOpen, 'token', fails(), stays],
  ['open, a token is refused after it', { ...isOpen, isDue: true }, 'token', fails(), opens({ level: 1 })],

  // Half-open, opened by a poll or by none.
  ['the trial by a submission works', halfOpen(), 'submission', works, closes],
  ['the trial by a poll works', halfOpen(), 'poll', works, closes],
  ['the trial by a question works', halfOpen(), 'question', works, closes],
  ['the trial never left', halfOpen(), 'poll', unknown, again],
  ['the trial is refused', halfOpen({ level: 1 }), 'poll', fails('unreachable'), opens({ level: 2, forMs: 4_000 })],
  ['the trial by a poll gets 403', halfOpen(), 'poll', forbiddenGet, opens({ level: 1, openedBy: 'record' })],
  ['the trial by a question gets 403', halfOpen(), 'question', forbiddenGet, closes],
  ['the trial by a question is not answered', halfOpen(), 'question', fails('unreachable'), opens({ openedBy: null })],

  // Half-open, opened by a submission: a GET proves too little.
  ['a poll works', ofSubmission, 'poll', works, nextIsPost],
  ['a question works', ofSubmission, 'question', works, nextIsPost],
  ['a poll gets 403', ofSubmission, 'poll', forbiddenGet, nextIsPost],
  ['a question gets 403', ofSubmission, 'question', forbiddenGet, nextIsPost],
  ['a GET fails after a doubt', { ...ofSubmission, isInDoubt: true }, 'question', fails(), opens({ isInDoubt: true })],
  ['a poll gets 503', ofSubmission, 'poll', fails(), opens({ isOfSubmission: true, level: 1 })],
  ['a further poll works', { ...ofSubmission, hasGetWorked: true, trial: null }, 'poll', works, stays],
  [
    'a further poll fails',
    { ...ofSubmission, hasGetWorked: true, trial: null },
    'poll',
    fails(),
    opens({ level: 1, hasGetWorked: false }),
  ],
  [
    'a further poll fails while the submission is on the wire, whose answer must count',
    { ...ofSubmission, hasGetWorked: true, trial: '8' },
    'poll',
    fails(),
    stays,
  ],
  [
    'a further poll fails while submissions wait for a person',
    { ...ofSubmission, hasGetWorked: true, trial: null, doubts: 3 },
    'poll',
    fails(),
    stays,
  ],
  [
    'an earlier submission is refused while polls go on',
    { ...ofSubmission, hasGetWorked: true, trial: null },
    'submission',
    refusedPost,
    stays,
  ],
  [
    'a poll is not answered after submissions in doubt, which is no trial in doubt',
    ofSubmission,
    'poll',
    silentPost,
    opens({ isInDoubt: true, doubts: 0 }),
  ],
  ['the submission works', { ...ofSubmission, hasGetWorked: true }, 'submission', works, closes],
  ['the submission never left', { ...ofSubmission, hasGetWorked: true }, 'submission', unknown, nextIsPost],
  [
    'the submission is refused',
    { ...ofSubmission, hasGetWorked: true },
    'submission',
    refusedPost,
    opens({ doubts: 0 }),
  ],
  ['the submission is left in doubt', ofSubmission, 'submission', silentPost, opens({ doubts: 1, forMs: 2_000 })],
])('%s', (_, breaker, request, sign, expected) => {
  const { requestId } = answer(request, sign)
  expect(decide(breaker, request, sign, request === 'token' ? null : requestId)).toMatchObject(expected)
})

test('an answer to a different request than the trial changes nothing, also if the trial is over', () => {
  for (const sign of [works, unknown, refusedPost, silentPost]) {
    expect(decide(halfOpen(), 'submission', sign, '6')).toEqual(stays)
    expect(decide(halfOpen({ trial: null, isDue: true }), 'submission', sign, '6')).toEqual(stays)
  }
})

test('after three trials in doubt a person has to act', () => {
  const step = decide({ ...ofSubmission, doubts: 2 }, 'submission', silentPost)
  expect(step).toMatchObject(opens({ doubts: 3, forMs: null, hasGetWorked: false }))
  const afterGet = { ...ofSubmission, hasGetWorked: true, doubts: 2 }
  expect(decide(afterGet, 'submission', silentPost)).toMatchObject(opens({ forMs: null, hasGetWorked: true }))
  expect(step.kind === 'opens' && step.pause.detail).toMatch(/unreachable it says; 3 submissions .*resume --all/)
})

describe('a trial by a submission that was lost with its daemon', () => {
  const lost = (breaker: Partial<Breaker>, isInDoubt: boolean, cause: LostTrial['cause'] = 'unreachable') =>
    decideBreaker({ ...ofSubmission, ...breaker }, lostTrialAnswer({ requestId: '7', cause, isInDoubt }), backoff)

  test('opens the breaker again, for longer, for the same cause, and blames no record', () => {
    expect(lost({ level: 1 }, false, 'throttled')).toMatchObject(
      opens({ level: 2, forMs: 4_000, code: null, openedBy: null, isOfSubmission: true, isInDoubt: false, doubts: 0 }),
    )
    expect(lost({}, false, 'throttled')).toMatchObject({
      pause: { reason: 'throttled', detail: expect.stringMatching(/./), logDetail: expect.stringMatching(/./) },
    })
  })

  test('needs a GET that works and a submission that works again, also if a poll had opened the breaker', () => {
    expect(lost({ isOfSubmission: false }, false)).toMatchObject(opens({ isOfSubmission: true }))
  })

  test('counts as a doubt if its record is left in doubt, and the third waits for a person', () => {
    expect(lost({ doubts: 1 }, true)).toMatchObject(opens({ isInDoubt: true, doubts: 2, forMs: 2_000 }))
    expect(lost({ doubts: 2 }, true)).toMatchObject(opens({ doubts: 3, forMs: null }))
  })
})

describe('a pause lasts', () => {
  const lengths = (sign: BreakerSign & { kind: 'fails' }, count: number) =>
    Array.from({ length: count }, (_, level) => {
      const step = decide(halfOpen({ level: level - 1 }), 'poll', sign)
      return step.kind === 'opens' ? step.forMs : null
    })
  const asked = (reason: PauseToRaise['reason'], askedMs: number) => ({
    ...fails(reason),
    pause: { reason, askedMs, detail: 'x' },
  })

  test.each([
    ['throttled', [1_000, 2_000, 4_000, 8_000, 8_000]],
    ['unreachable', [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]],
    ['unavailable', [300_000, 300_000]],
    ['unauthorized', [60_000, 60_000]],
  ] as const)('%s: %j', (reason, expected) => {
    expect(lengths(fails(reason), expected.length)).toEqual(expected)
  })

  test('as long as Retry-After says, with 429 only if that is longer, and longer if trials fail', () => {
    expect(lengths(asked('throttled', 3_000), 5)).toEqual([3_000, 3_000, 4_000, 8_000, 8_000])
    expect(lengths(asked('unavailable', 3_000), 5)).toEqual([3_000, 3_000, 4_000, 8_000, 16_000])
    expect(lengths(asked('unavailable', 0), 1)).toEqual([1_000])
  })
})

describe('the record whose answer opened the breaker', () => {
  const opening = (given: Partial<Opening> = {}): Opening => ({
    pause: { reason: 'unavailable', askedMs: null, detail: 'the service answered 503' },
    code: 'E003',
    level: 0,
    forMs: 5_000,
    openedBy: 'record',
    isOfSubmission: true,
    isInDoubt: false,
    hasGetWorked: false,
    doubts: 0,
    ...given,
  })
  const queued: GivenChange = { state: 'queued', dueInMs: 0 }
  const accepted: GivenChange = { state: 'accepted', transactionId: 'tx', pollInMs: 0, unknown: false }
  const moved = (
    change: GivenChange,
    history: { openedTimes: number; othersGotThrough: boolean },
    given: { submission?: Partial<Submission>; isPoll?: boolean; opening?: Partial<Opening> } = {},
  ): Change => {
    const poll = given.isPoll ? { requestId: '1', claimId: 'claim' } : null
    const transition = {
      submission: submission(given.submission),
      poll,
      change: asChange(change),
      cause: 'paused',
      message: null,
      request: null,
    } as const
    return moveOpenerBehind(transition, opening(given.opening), history).change
  }
  const first = { openedTimes: 0, othersGotThrough: false }
  const third = { openedTimes: 2, othersGotThrough: true }

  test('goes behind all that wait when the pause ends', () => {
    expect(moved(queued, first)).toMatchObject({ state: 'queued', dueInMs: 5_000, openedTimes: 1 })
    expect(moved({ ...queued, dueInMs: 60_000 }, first)).toMatchObject({ dueInMs: 60_000 })
    expect(moved(accepted, first, { isPoll: true })).toMatchObject({
      state: 'accepted',
      pollInMs: 6_000,
      openedTimes: 1,
    })
  })

  test('keeps its time if only a person ends the pause', () => {
    const opening = { forMs: null }
    expect(moved(queued, first, { opening })).toMatchObject({ dueInMs: 0, openedTimes: 1 })
    expect(moved(accepted, first, { isPoll: true, opening })).toMatchObject({ pollInMs: 0, openedTimes: 1 })
  })

  test('is counted again only if submissions of others got through', () => {
    expect(moved(queued, { openedTimes: 1, othersGotThrough: true })).toMatchObject({ openedTimes: 2 })
    expect(moved(queued, { openedTimes: 2, othersGotThrough: false })).toMatchObject({
      state: 'queued',
      openedTimes: 2,
    })
  })

  test.each([
    ['rejected', queued, {}, { mayHaveArrived: false }],
    ['rejected', { ...queued, answeredUnavailable: true }, {}, { mayHaveArrived: true }],
    ['rejected', queued, { answeredUnavailable: true }, { mayHaveArrived: true }],
    ['rejected', queued, { serverErrors: 1 }, { mayHaveArrived: true }],
    ['rejected', queued, { resubmissions: 1 }, { mayHaveArrived: true }],
    ['rejected', { ...queued, resubmissions: 1 }, {}, { mayHaveArrived: true }],
    ['uncertain', queued, { inDoubt: true }, {}],
    ['uncertain', { ...queued, inDoubt: true }, {}, { inDoubt: true }],
    ['uncertain', { state: 'sending', pollInMs: 0 }, {}, {}],
  ] as [
    string,
    GivenChange,
    Partial<Submission>,
    object,
  ][])('ends %s at the third time: %j for %j', (state, change, given, more) => {
    expect(moved(change, third, { submission: given })).toMatchObject({
      state,
      errorCode: 'E003',
      error: expect.stringMatching(/503; this record paused sending 3 times while others got through/),
      ...more,
    })
  })

  test('ends uncertain if its polls did it', () => {
    for (const change of [accepted, queued]) // queued: its transaction failed, so it was to be submitted again
      expect(moved(change, third, { isPoll: true })).toMatchObject({ state: 'uncertain' })
  })

  test('stays as it is if its answer has ended it', () => {
    const change: GivenChange = { state: 'uncertain', error: 'x', errorCode: null, doneMs: null }
    expect(moved(change, third)).toEqual(change)
  })
})

test('whatever comes, only its own trial closes the breaker, and no pause is shorter than a second', () => {
  const anySign = fc.constantFrom(works, unknown, refusedPost, silentPost, forbiddenGet, fails('throttled'))
  const anyRequest = fc.constantFrom<RequestPurpose>('submission', 'poll', 'question', 'token')
  const anyBreaker = fc.constantFrom(closedBreaker, isOpen, halfOpen(), ofSubmission, { ...isOpen, isDue: true })
  fc.assert(
    fc.property(anyBreaker, anyRequest, anySign, fc.constantFrom('6', '7'), (breaker, request, sign, id) => {
      fc.pre(request !== 'token' || sign.kind === 'fails')
      const step: BreakerStep = decide(breaker, request, sign, request === 'token' ? null : id)
      if (step.kind === 'closes') expect(breaker.trial).toBe(id)
      if (step.kind === 'opens') expect(step.forMs ?? 1_000).toBeGreaterThanOrEqual(1_000)
      if (breaker.state === 'closed') expect(step.kind).toBe(sign.kind === 'fails' ? 'opens' : 'stays')
    }),
  )
})
