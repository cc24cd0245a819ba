import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DaemonContext } from '../../../src/daemon/context.ts'
import { Dispatch, type DispatchStages } from '../../../src/daemon/dispatch/dispatch.ts'
import type { PollCompetitors } from '../../../src/daemon/pollPlanner.ts'
import type { Claim, ClaimedQuestion, ClaimRequest, RequestDemand } from '../../../src/model/dispatch.ts'
import type { Answer, PauseToRaise, TokenVerdict } from '../../../src/model/service.ts'
import type { AttemptResult } from '../../../src/model/submission.ts'
import type { LogFields } from '../../../src/observe/log.ts'
import { findPauseForGetAnswer } from '../../../src/service/readAnswer.ts'
import { noAnswer, response } from '../../support/answers.ts'
import { asChange } from '../../support/change.ts'
import { submission } from '../../support/submission.ts'
import { until } from '../../support/until.ts'

type Settled = Parameters<DispatchStages['outcomes']['add']>[0]

const minuteMs = 60_000

const worked = (answer: Answer | null, pause: PauseToRaise | null = null): AttemptResult => ({
  step: { change: asChange({ state: 'failed' }), cause: 'failed', message: 'test', pause },
  answer,
  breach: null,
})
const good = worked(response(200, {}))

/** A dispatcher on a ledger as `given`, whose requests are answered when the test says so. */
function setup(
  given: {
    ready?: number
    due?: number
    free?: number
    maxInFlight?: number
    pauses?: RequestDemand['pauses']
    breaker?: RequestDemand['breaker']
    trial?: 'submission' | 'poll' | 'question' | 'none'
  } = {},
) {
  const ledger = {
    ready: 0,
    due: 0,
    free: 100,
    nextFreeMs: 400,
    pauses: [] as RequestDemand['pauses'],
    breaker: null as RequestDemand['breaker'],
    trial: 'none' as 'submission' | 'poll' | 'question' | 'none',
    ...given,
  }
  const claims: ClaimRequest[] = []
  let trials = 0
  const questions: {
    question: ClaimedQuestion
    accessToken: string
    isValid: () => boolean
    answer: (answer: Answer | null) => void
  }[] = []
  const unclaimed: string[] = []
  const settled: Settled[] = []
  const refused: string[] = []
  const failed: unknown[] = []
  const onWire: {
    id: string
    accessToken: string
    isValid: () => boolean
    answer: (what: AttemptResult | Error) => void
  }[] = []
  const state = {
    nowMs: 0,
    wired: 0,
    wiredMost: 0,
    token: { kind: 'token', accessToken: 'token' } as TokenVerdict,
    statementFails: null as Error | null,
    claimFails: null as Error | null,
    trialFails: null as Error | null,
    othersAreQuicker: false,
    mayClaim: true,
    claimTakesMs: 0,
    heartbeatGaps: 0,
    becomesSilent: false,
    beatsAfterGap: false,
    knownWhatBecame: true,
    tokensAreOld: false,
    written: null as Promise<void> | null,
  }
  let [ids, requests] = [0, 0]
  const nextRequest = () => `request ${++requests}`
  const deadline = () => {
    const startMs = state.nowMs
    return () => state.nowMs - startMs < 3_000
  }
  let onRoom = () => {}
  const demands: PollCompetitors[] = []
  const send: DispatchStages['attempts']['poll'] = (each, { accessToken, mayLeave: isValid }) =>
    new Promise<AttemptResult>((resolve, reject) => {
      state.wired += 1
      state.wiredMost = Math.max(state.wiredMost, state.wired)
      onWire.push({
        id: each.id,
        accessToken,
        isValid,
        answer(what) {
          state.wired -= 1
          if (what instanceof Error) reject(what)
          else resolve(what)
        },
      })
    })
  const context = {
    config: { maxInFlight: given.maxInFlight ?? 8, rateLimit: { requests: 100, windowMs: minuteMs } },
    clock: {
      nowMs: () => state.nowMs,
      stopwatch() {
        const startMs = state.nowMs
        return () => state.nowMs - startMs
      },
    },
    host: { mayClaim: () => true, fault: () => null },
    log: { error: (_: string, fields?: LogFields) => failed.push(fields?.error) },
    metrics: { tokenExpiry: { set() {} } },
    telemetry: { claimed() {}, attempted() {}, requestDone() {} },
    wakeups: { dispatch: { wake: () => onRoom() }, orphans: { wake() {} } },
  } as unknown as DaemonContext
  const dispatcher = new Dispatch(context, {
    async readDemand() {
      return {
        limit: 100,
        submissionsReady: ledger.ready,
        pollsDue: ledger.due,
        rarePollsDue: 0,
        pollOverdueMs: 0,
        free: ledger.free,
        nextDueMs: null,
        nextFreeMs: ledger.nextFreeMs,
        pauses: ledger.pauses,
        breaker: ledger.breaker,
      }
    },
    pauseLog: { seen() {} },
    planner: { noteDemand: (demand) => void demands.push(demand) },
    heartbeat: {
      mayClaim: () => state.mayClaim,
      watchHeartbeat() {
        const begun = state.heartbeatGaps
        return () => state.mayClaim && state.heartbeatGaps === begun
      },
    },
    tokens: {
      ready: async () => state.token,
      expiresAtMs: () => null,
      used() {},
      reject: (accessToken) => void refused.push(accessToken),
    },
    tokenRequests: { limit: 100 },
    claims: {
      async claim(request, onCommit) {
        claims.push(request)
        if (state.statementFails) throw state.statementFails
        state.nowMs += state.claimTakesMs
        const next = () => submission({ id: String(++ids) })
        const submissions = Array.from({ length: Math.min(request.submissions, ledger.ready) }, () => ({
          ...next(),
          requestId: nextRequest(),
          waitedMs: 7,
        }))
        onCommit(submissions)
        if (state.claimFails) throw state.claimFails
        if (state.becomesSilent) state.mayClaim = false
        if (state.beatsAfterGap) state.heartbeatGaps += 1
        if (state.othersAreQuicker) {
          ;[ledger.ready, ledger.due] = [0, 0]
          return { submissions: [], polls: [], question: null, mayLeave: deadline() }
        }
        const polls = Array.from({ length: Math.min(request.polls, ledger.due) }, () => {
          const polled = next()
          return { submission: polled, poll: { requestId: nextRequest(), claimId: request.id } }
        })
        ledger.ready -= submissions.length
        ledger.due -= polls.length
        ledger.free -= submissions.length + polls.length
        return { submissions, polls, question: null, mayLeave: deadline() }
      },
      async claimTrial(id, onCommit): Promise<Claim> {
        trials += 1
        const kind = state.othersAreQuicker ? 'none' : ledger.trial
        const next = () => submission({ id: String(++ids) })
        const submissions = kind === 'submission' ? [{ ...next(), requestId: nextRequest(), waitedMs: 7 }] : []
        onCommit(submissions)
        if (state.trialFails) throw state.trialFails
        if (state.becomesSilent) state.mayClaim = false
        return {
          submissions,
          polls: kind === 'poll' ? [{ submission: next(), poll: { requestId: nextRequest(), claimId: id } }] : [],
          question:
            kind === 'question' ? { requestId: nextRequest(), resource: 'data', transactionId: 'tx-of-last' } : null,
          mayLeave: deadline(),
        }
      },
      async requeueUnsentClaim(id) {
        unclaimed.push(id)
        return state.knownWhatBecame
      },
    },
    attempts: {
      submit: send,
      poll: send,
      ask: (question, { accessToken, mayLeave: isValid }) =>
        new Promise((resolve) =>
          questions.push({
            question,
            accessToken,
            isValid,
            answer: (answer) =>
              resolve({ answer, pause: answer && findPauseForGetAnswer(answer), mayTokenBeOld: state.tokensAreOld }),
          }),
        ),
    },
    outcomes: {
      async add(work) {
        settled.push(work)
        await state.written
      },
    },
  })
  const nextRoom = () =>
    new Promise<void>((resolve) => {
      onRoom = resolve
    })
  /** Answers the oldest request on the wire, and waits until its outcome is settled. */
  async function answer(what: AttemptResult | Error = good) {
    const room = nextRoom()
    onWire.shift()?.answer(what)
    await room
  }
  /** Answers the question, and waits until its outcome is settled. */
  async function reply(what: Answer | null) {
    const room = nextRoom()
    questions.shift()?.answer(what)
    await room
  }
  return {
    dispatcher,
    ledger,
    state,
    claims,
    demands,
    trials: () => trials,
    questions,
    unclaimed,
    settled,
    refused,
    failed,
    onWire,
    answer,
    reply,
  }
}

test('ready submissions and due polls are sent', async () => {
  const { dispatcher, claims, onWire } = setup({ ready: 2, due: 1 })
  expect(await dispatcher.runOnce()).toBe(0)
  expect(claims).toMatchObject([{ submissions: 2, polls: 1, rarePolls: 0 }])
  expect(onWire.map(({ accessToken }) => accessToken)).toEqual(['token', 'token', 'token'])
  expect(onWire.every(({ isValid }) => isValid())).toBe(true)
  expect(dispatcher.inFlight()).toBe(3)
  expect(dispatcher.holdsPoll({ requestId: 'request 3', claimId: '' })).toBe(true)
})

test('the demand is passed on before any decision, even during a pause', async () => {
  const { dispatcher, demands } = setup({ ready: 2, pauses: [{ reason: 'operator', leftMs: null, forMs: 0 }] })
  await dispatcher.runOnce()
  expect(demands).toMatchObject([{ limit: 100, submissionsReady: 2 }])
})

test('an outcome is settled with its poll, and makes room', async () => {
  const { dispatcher, claims, settled, answer } = setup({ ready: 1, due: 1 })
  await dispatcher.runOnce()
  await answer()
  await answer()
  const poll = { requestId: 'request 2', claimId: claims[0]?.id }
  expect(settled.map(({ transition }) => transition?.poll)).toEqual([null, poll])
  expect(settled[0]?.transition).toMatchObject({
    submission: { id: '1' },
    change: { state: 'failed' },
    cause: 'failed',
    message: 'test',
  })
  expect(dispatcher.inFlight()).toBe(0)
  expect(dispatcher.holdsPoll({ requestId: 'request 2', claimId: '' })).toBe(false)
  await dispatcher.drained()
})

test('a request is over when it is answered, goes back if it never left, and else counts on', async () => {
  const { dispatcher, settled, answer } = setup({ ready: 2, due: 2 })
  await dispatcher.runOnce()
  await answer(worked(response(500)))
  await answer(worked(noAnswer({ sent: true, cause: 'timeout' })))
  await answer(worked(null))
  await answer(worked(noAnswer({ sent: false, cause: 'network' })))
  expect(settled.map(({ answeredRequests, unsentRequests }) => [answeredRequests, unsentRequests])).toEqual([
    [['request 1'], []],
    [[], []],
    [[], ['request 3']],
    [[], ['request 4']],
  ])
})

test('never more than maxInFlight requests are in flight, whatever waits and however answers come', async () => {
  const step = fc.oneof(fc.constant('run' as const), fc.constant('answer' as const))
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 8 }),
      fc.nat(200),
      fc.nat(200),
      fc.array(step, { maxLength: 60 }),
      async (maxInFlight, ready, due, steps) => {
        const { dispatcher, state, onWire, answer } = setup({ ready, due, maxInFlight })
        for (const each of steps) {
          state.nowMs += 100
          if (each === 'run') await dispatcher.runOnce()
          else if (onWire.length > 0) await answer()
        }
        expect(state.wiredMost).toBeLessThanOrEqual(maxInFlight)
        expect(dispatcher.inFlight()).toBe(onWire.length)
      },
    ),
    { numRuns: 50 },
  )
})

test('without room in flight nothing is claimed, and the dispatcher looks again after a second', async () => {
  const { dispatcher, claims } = setup({ ready: 50, maxInFlight: 2 })
  await dispatcher.runOnce()
  expect(await dispatcher.runOnce()).toBe(1_000)
  expect(claims).toHaveLength(1)
})

test('while a pause is being written, nothing is claimed (a 401 to all went through four waves)', async () => {
  const { dispatcher, ledger, state, claims, onWire, answer, settled } = setup({ ready: 2 })
  await dispatcher.runOnce()
  const writing = Promise.withResolvers<void>()
  state.written = writing.promise
  const answered = answer(worked(response(401), { reason: 'unauthorized', askedMs: null, detail: 'no' }))
  await until(
    () => settled.length,
    (count) => count > 0,
  )
  ledger.ready = 5
  expect(await dispatcher.runOnce()).toBeGreaterThan(0)
  expect(claims).toHaveLength(1)
  expect(onWire).toHaveLength(1)
  // If a lock on the record delays the pause, other records do not wait for it.
  state.nowMs += 5_000
  await dispatcher.runOnce()
  expect(claims).toHaveLength(2)
  writing.resolve()
  await answered
})

describe('the next look comes', () => {
  test('after two seconds if nothing waits', async () => {
    expect(await setup().dispatcher.runOnce()).toBe(2_000)
  })

  test('when the next request is free, if work waits for one', async () => {
    const { dispatcher, claims } = setup({ ready: 5, free: 0 })
    expect(await dispatcher.runOnce()).toBe(400)
    expect(claims).toEqual([])
  })

  test('after 50 ms if other instances took the work', async () => {
    const { dispatcher, state, settled } = setup({ ready: 1 })
    state.othersAreQuicker = true
    expect(await dispatcher.runOnce()).toBe(50)
    expect(settled).toEqual([])
  })

  test.each([
    [[{ reason: 'operator', leftMs: 300, forMs: 0 }], null, 300],
    [[{ reason: 'operator', leftMs: null, forMs: 0 }], null, 1_000],
    [[{ reason: 'throttled', leftMs: 300, forMs: 0 }], 300, 300],
    [[{ reason: 'unavailable', leftMs: 200_000, forMs: 0 }], 200_000, 1_000],
    [[{ reason: 'unreachable', leftMs: null, forMs: 0 }], null, 1_000],
  ] as [
    RequestDemand['pauses'],
    number | null,
    number,
  ][])('after the pauses %j in %d ms, and nothing is sent before', async (pauses, leftMs, againMs) => {
    const breaker = pauses[0]?.reason === 'operator' ? null : { leftMs, hasGetWorked: false }
    const { dispatcher, claims } = setup({ ready: 5, due: 5, pauses, breaker })
    expect(await dispatcher.runOnce()).toBe(againMs)
    expect(claims).toEqual([])
  })
})

describe('a trial', () => {
  const due = { breaker: { leftMs: -1, hasGetWorked: false } }
  const silent = worked(noAnswer({ sent: true, cause: 'timeout' }))

  test('is claimed by itself, whatever waits', async () => {
    const { dispatcher, claims, trials, onWire } = setup({ ready: 50, due: 50, ...due, trial: 'poll' })
    expect(await dispatcher.runOnce()).toBe(0)
    expect([claims, trials(), onWire.length]).toEqual([[], 1, 1])
  })

  test('may ask for a transaction that the service knows', async () => {
    const { dispatcher, questions, reply, settled } = setup({ ...due, trial: 'question' })
    await dispatcher.runOnce()
    expect(questions).toMatchObject([{ accessToken: 'token', question: { transactionId: 'tx-of-last' } }])
    expect(questions[0]?.isValid()).toBe(true)
    expect(dispatcher.inFlight()).toBe(1)
    await reply(response(404))
    const answers = [{ request: 'question', requestId: 'request 1', submissionId: null, sign: { kind: 'works' } }]
    expect(settled).toMatchObject([{ transition: null, answeredRequests: ['request 1'], answers }])
  })

  test('waits for a free request, and a second if nothing can be the trial or another instance has it', async () => {
    const spent = setup({ ready: 1, free: 0, ...due, trial: 'poll' })
    expect(await spent.dispatcher.runOnce()).toBe(400)
    const second = setup({ ready: 1, ...due, trial: 'poll' })
    second.state.othersAreQuicker = true
    expect(await second.dispatcher.runOnce()).toBe(1_000)
    expect([spent.onWire, second.onWire]).toEqual([[], []])
  })

  test.each([
    [good, { kind: 'works' }],
    [silent, { kind: 'fails' }],
    [worked(null), { kind: 'unknown' }],
  ] as const)('says what its answer means for the breaker: %j', async (answered, sign) => {
    for (const trial of ['submission', 'poll'] as const) {
      const { dispatcher, settled, answer } = setup({ ...due, trial })
      await dispatcher.runOnce()
      await answer(answered)
      expect(settled).toMatchObject([
        { answers: [{ request: trial, requestId: 'request 1', submissionId: '1', sign }] },
      ])
    }
  })

  test('is given back if its claim came too late', async () => {
    const { dispatcher, state, settled, onWire } = setup({ ready: 50, ...due, trial: 'submission' })
    state.becomesSilent = true
    await dispatcher.runOnce()
    await dispatcher.runOnce()
    expect(onWire).toEqual([])
    expect(settled).toMatchObject([
      { unsentRequests: ['request 1'], answers: [{ requestId: 'request 1', sign: { kind: 'unknown' } }] },
    ])
  })

  test('is not ended by the answer to another request', async () => {
    const { dispatcher, settled, answer } = setup({ ready: 1 })
    await dispatcher.runOnce()
    await answer()
    expect(settled).toMatchObject([{ answers: [] }])
  })
})

describe('a service that hangs', () => {
  const silent = worked(noAnswer({ sent: true, cause: 'timeout' }))

  test('makes all instances pause after five requests in a row without an answer', async () => {
    const { dispatcher, settled, answer } = setup({ ready: 8 })
    await dispatcher.runOnce()
    for (let i = 0; i < 5; i++) await answer(i === 2 ? worked(response(502)) : silent)
    expect(settled.map(({ answers }) => answers.length)).toEqual([0, 0, 0, 0, 1])
  })

  test('is not assumed if it answers now and then', async () => {
    const { dispatcher, settled, answer } = setup({ ready: 8 })
    await dispatcher.runOnce()
    for (let i = 0; i < 8; i++) await answer(i === 4 ? worked(response(500)) : silent)
    expect(settled.flatMap(({ answers }) => answers)).toEqual([])
  })

  test('gets no new records in place of those without an answer', async () => {
    const { dispatcher, claims, answer } = setup({ ready: 50 })
    await dispatcher.runOnce()
    const first = claims[0]?.submissions ?? 0
    for (let i = 0; i < 4; i++) {
      await answer(silent)
      await dispatcher.runOnce()
    }
    expect(claims.reduce((sum, { submissions }) => sum + submissions, 0)).toBeLessThanOrEqual(8)
    expect(first).toBeGreaterThan(0)
  })

  test('makes all instances pause after one request, if one is sent at a time', async () => {
    const { dispatcher, settled, answer } = setup({ ready: 8, maxInFlight: 1 })
    await dispatcher.runOnce()
    await answer(silent)
    expect(settled).toMatchObject([{ answers: [{ sign: { kind: 'fails', pause: { reason: 'unreachable' } } }] }])
  })

  test('only on records is noticed even while it answers polls', async () => {
    const { dispatcher, settled, answer, onWire } = setup({ ready: 5, due: 3 })
    await dispatcher.runOnce()
    const polls = onWire.splice(-3)
    for (let i = 0; i < 5; i++) {
      await answer(silent)
      if (polls.length > 0) {
        onWire.unshift(...polls.splice(0, 1))
        await answer(good)
      }
    }
    expect(settled.flatMap(({ answers }) => answers)).toHaveLength(1)
  })
})

describe('a claim whose answer was lost', () => {
  test('of a trial is no doubt: the trial never left', async () => {
    const due = { breaker: { leftMs: -1, hasGetWorked: false } }
    const { dispatcher, state, settled } = setup({ ready: 1, ...due, trial: 'submission' })
    state.trialFails = new Error('connection lost')
    await expect(dispatcher.runOnce()).rejects.toThrow('lost')
    expect(settled).toEqual([])
    await dispatcher.recoverClaims()
    expect(settled).toMatchObject([
      { unsentRequests: ['request 1'], answers: [{ requestId: 'request 1', sign: { kind: 'unknown' } }] },
    ])
  })

  test('is given back before the next claim', async () => {
    const { dispatcher, state, claims, unclaimed, onWire } = setup({ ready: 1 })
    state.claimFails = new Error('connection lost')
    await expect(dispatcher.runOnce()).rejects.toThrow('lost')
    expect(unclaimed).toEqual([])
    state.claimFails = null
    await dispatcher.runOnce()
    expect(unclaimed).toEqual([claims[0]?.id])
    expect(claims).toHaveLength(2)
    expect(onWire).toHaveLength(1)
    await dispatcher.runOnce()
    expect(unclaimed).toHaveLength(1)
  })

  test('is looked up until its fate is known, and counts as in hand until then', async () => {
    const { dispatcher, state, claims, unclaimed, onWire } = setup({ ready: 1 })
    state.claimFails = new Error('connection lost')
    state.knownWhatBecame = false
    await dispatcher.runOnce().catch(() => {})
    state.claimFails = null
    state.nowMs = 90_000
    await dispatcher.runOnce()
    await dispatcher.runOnce()
    expect(unclaimed).toEqual([claims[0]?.id, claims[0]?.id])
    expect(onWire).toHaveLength(1)
    expect(dispatcher.holds({ id: 'any', claimId: claims[0]?.id ?? '' })).toBe(true)
    expect(dispatcher.lostClaims()).toMatchObject([{ id: claims[0]?.id, submissions: [{ id: '1' }], sinceMs: 0 }])
    state.knownWhatBecame = true
    await dispatcher.recoverClaims()
    expect(dispatcher.holds({ id: 'any', claimId: claims[0]?.id ?? '' })).toBe(false)
    expect(dispatcher.lostClaims()).toEqual([])
  })
})

test('a claim that failed before its COMMIT does not count as lost', async () => {
  const { dispatcher, state, unclaimed } = setup({ ready: 1 })
  state.statementFails = new Error('canceling statement due to lock timeout')
  await expect(dispatcher.runOnce()).rejects.toThrow('lock')
  expect(dispatcher.lostClaims()).toEqual([])
  state.statementFails = null
  await dispatcher.runOnce()
  expect(unclaimed).toEqual([])
})

describe('an instance that others may soon count as dead', () => {
  test('claims nothing', async () => {
    const { dispatcher, state, claims } = setup({ ready: 1 })
    state.mayClaim = false
    expect(await dispatcher.runOnce()).toBe(1_000)
    expect(claims).toEqual([])
  })

  test('does not send a record it has claimed, even if the request is about to leave', async () => {
    const { dispatcher, state, claims, unclaimed, onWire, settled } = setup({ ready: 1 })
    state.becomesSilent = true
    await dispatcher.runOnce()
    expect([claims.length, onWire.length]).toEqual([1, 0])
    await dispatcher.runOnce()
    expect(unclaimed).toEqual([claims[0]?.id])
    expect(settled).toMatchObject([{ unsentRequests: ['request 1'], answers: [] }])

    const other = setup({ ready: 1 })
    await other.dispatcher.runOnce()
    expect(other.onWire[0]?.isValid()).toBe(true)
    other.state.mayClaim = false
    expect(other.onWire[0]?.isValid()).toBe(false)
  })

  test('does not send it after its next heartbeat either, because others may have made the record uncertain', async () => {
    const { dispatcher, state, onWire } = setup({ ready: 1 })
    await dispatcher.runOnce()
    state.heartbeatGaps += 1
    expect(onWire[0]?.isValid()).toBe(false)

    const during = setup({ ready: 1 })
    during.state.beatsAfterGap = true
    await during.dispatcher.runOnce()
    expect(during.onWire).toEqual([])
    await during.dispatcher.runOnce()
    expect(during.unclaimed).toEqual([during.claims[0]?.id])
  })
})

test('a record in flight is in hand only by its current claim', async () => {
  const { dispatcher, onWire, answer } = setup({ ready: 1 })
  await dispatcher.runOnce()
  const held = { id: onWire[0]?.id ?? '', claimId: submission().claimId }
  expect(dispatcher.holds(held)).toBe(true)
  expect(dispatcher.holds({ ...held, claimId: 'another' })).toBe(false)
  await answer()
  expect(dispatcher.holds(held)).toBe(false)
})

describe('the token', () => {
  test('is rejected if the service refused it', async () => {
    const { dispatcher, refused, answer } = setup({ ready: 1 })
    await dispatcher.runOnce()
    await answer(worked(response(401)))
    expect(refused).toEqual(['token'])
  })

  test('raises its pause if it cannot be had, and nothing is claimed', async () => {
    const { dispatcher, state, claims, settled } = setup({ ready: 1 })
    const pause: PauseToRaise = { reason: 'unauthorized', askedMs: null, detail: 'x' }
    state.token = { kind: 'pause', pause }
    expect(await dispatcher.runOnce()).toBe(5_000)
    expect(claims).toEqual([])
    expect(settled).toMatchObject([
      { transition: null, answers: [{ request: 'token', sign: { kind: 'fails', pause } }] },
    ])
  })

  test('waits for the next free request if none is free', async () => {
    const { dispatcher, state, claims } = setup({ ready: 1 })
    state.token = { kind: 'not-now' }
    expect(await dispatcher.runOnce()).toBe(400)
    expect(claims).toEqual([])
  })

  test('is tried again after a second if no request is free for an hour', async () => {
    const { dispatcher, state, ledger } = setup({ ready: 1 })
    state.token = { kind: 'not-now' }
    ledger.nextFreeMs = 3_600_000
    expect(await dispatcher.runOnce()).toBe(1_000)
  })
})

test('a process that was suspended between claim and request does not send, because its deadline has passed', async () => {
  const { dispatcher, state, onWire } = setup({ ready: 1 })
  await dispatcher.runOnce()
  expect(onWire[0]?.isValid()).toBe(true)
  state.nowMs += 2_999
  expect(onWire[0]?.isValid()).toBe(true)
  state.nowMs += 1
  expect(onWire[0]?.isValid()).toBe(false)
})

test('the service’s number of requests left is passed on only if it is lower than expected', async () => {
  const { dispatcher, settled, answer } = setup({ ready: 2, free: 50 })
  await dispatcher.runOnce()
  await answer(worked({ ...response(200), rateRemaining: 47 }))
  await answer(worked({ ...response(200), rateRemaining: 48 }))
  expect(settled.map(({ remaining }) => remaining?.requests ?? null)).toEqual([47, null])
})

test('a request that failed by a mistake of ours makes room and is reported', async () => {
  const { dispatcher, failed, settled, answer } = setup({ ready: 1 })
  await dispatcher.runOnce()
  const mistake = new TypeError('a mistake of ours')
  await answer(mistake)
  expect(failed).toEqual([mistake])
  expect(settled).toEqual([])
  expect(dispatcher.inFlight()).toBe(0)
})

test('drained resolves when nothing is in flight and all outcomes are settled', async () => {
  const { dispatcher, settled, onWire } = setup({ ready: 2 })
  await dispatcher.runOnce()
  const drained = dispatcher.drained().then(() => settled.length)
  for (const each of onWire) each.answer(good)
  expect(await drained).toBe(2)
})
