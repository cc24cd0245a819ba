import { expect, test } from 'vitest'
import { blockedWaitMs, type InstanceState, planRound } from '../../../src/daemon/dispatch/planRound.ts'
import type { RequestDemand } from '../../../src/model/dispatch.ts'

const idle: InstanceState = {
  nowMs: 1_000_000,
  windowMs: 60_000,
  maxInFlight: 8,
  inFlight: 0,
  recordsInFlight: 0,
  isPausing: false,
  mayClaim: true,
  hasHostFault: false,
  silentRecords: 0,
  balance: null,
}

const nothingWaits: RequestDemand = {
  submissionsReady: 0,
  pollsDue: 0,
  rarePollsDue: 0,
  pollOverdueMs: 0,
  limit: 100,
  free: 100,
  nextDueMs: null,
  nextFreeMs: null,
  pauses: [],
  breaker: null,
}

const work: Partial<RequestDemand> = { submissionsReady: 3, pollsDue: 2, rarePollsDue: 1 }
const waits = (forMs: number) => ({ kind: 'wait', forMs })
const sends = (submissions: number, polls: number, rarePolls: number) => ({
  kind: 'send',
  submissions,
  polls,
  rarePolls,
})
const pause = (leftMs: number | null): RequestDemand['pauses'][number] => ({
  reason: 'operator',
  leftMs,
  forMs: 5_000,
})
const breaker = (leftMs: number | null, hasGetWorked = false) => ({ breaker: { leftMs, hasGetWorked } })
const over = { pauses: [{ ...pause(-1), reason: 'throttled' as const }], ...breaker(-1) }
const trial = { kind: 'trial' }

test.each<[string, Partial<InstanceState>, Partial<RequestDemand>, object]>([
  ['work and free requests', {}, work, sends(3, 2, 1)],
  ['work, and room for one request', { inFlight: 7 }, { submissionsReady: 3 }, sends(1, 0, 0)],
  ['as many polls as submissions', {}, { submissionsReady: 1, pollsDue: 1 }, sends(1, 1, 0)],
  ['as many rare polls as other requests', {}, { submissionsReady: 1, rarePollsDue: 1 }, sends(1, 0, 1)],

  // What this instance knows by itself.
  ['a pause that is being written', { isPausing: true }, work, waits(50)],
  ['a pause that is being written, and no room', { isPausing: true, inFlight: 8 }, work, waits(50)],
  ['no room', { inFlight: 8 }, work, waits(1_000)],
  ['a fault of this host', { hasHostFault: true }, work, sends(0, 0, 1)],
  ['a fault of this host, and no poll is due', { hasHostFault: true }, { submissionsReady: 3 }, sends(1, 0, 0)],
  [
    'a fault of this host, and a request that shows whether it stands',
    { hasHostFault: true, inFlight: 1 },
    work,
    waits(1_000),
  ],
  ['a heartbeat that is too old', { mayClaim: false }, work, waits(1_000)],

  // Pauses in the ledger.
  ['pauses', {}, { ...work, pauses: [pause(300), pause(700)] }, waits(700)],
  ['a long pause', {}, { ...work, pauses: [pause(200_000)] }, waits(1_000)],
  ['a pause that an operator ends', {}, { ...work, pauses: [pause(null), pause(5)] }, waits(1_000)],
  ['the breaker’s pause over beside an operator’s', {}, { ...work, ...over, pauses: [pause(300)] }, waits(300)],
  ['the breaker’s pause just over', {}, { ...work, ...breaker(0) }, trial],
  ['the breaker’s pause over', {}, { ...work, ...over }, trial],
  ['over, and nothing to send', {}, over, trial],
  ['over, and no free request', {}, { ...work, ...over, free: 0, nextFreeMs: 400 }, waits(400)],
  ['over, and no free request in sight', {}, { ...work, ...over, free: 0 }, waits(1_000)],
  ['over, and a free request far ahead', {}, { ...work, ...over, free: 0, nextFreeMs: 3_600_000 }, waits(1_000)],
  ['the trial of another instance', {}, { ...work, ...breaker(700) }, waits(700)],
  ['a breaker that a person ends', {}, { ...work, ...breaker(null) }, waits(1_000)],
  ['a breaker that needs a submission', {}, { ...work, ...breaker(-1, true) }, trial],
  ['a breaker that needs a submission, and only polls due', {}, { pollsDue: 1, ...breaker(-1, true) }, sends(0, 1, 0)],
  ['the trial of another instance after a GET', {}, { ...work, ...breaker(700, true) }, sends(0, 2, 1)],
  ['a submission that waits for a person', {}, { ...work, ...breaker(null, true) }, sends(0, 2, 1)],

  // Missing answers.
  ['five records unanswered', { silentRecords: 5 }, { submissionsReady: 20 }, sends(3, 0, 0)],
  [
    'unanswered ones and others on the wire',
    { silentRecords: 5, recordsInFlight: 3, inFlight: 3 },
    work,
    sends(0, 2, 1),
  ],

  // Nothing to do.
  ['nothing in sight', {}, {}, waits(2_000)],
  ['something that becomes due', {}, { nextDueMs: 300, nextFreeMs: 20 }, waits(300)],
  ['what should be due already', {}, { nextDueMs: -5 }, waits(1)],
  [
    'something that waits for a free request',
    {},
    { submissionsReady: 1, free: 0, nextDueMs: 20, nextFreeMs: 400 },
    waits(400),
  ],
  [
    'as many polls as submissions that wait for a free request',
    {},
    { submissionsReady: 1, pollsDue: 1, free: 0, nextFreeMs: 400 },
    waits(400),
  ],
  ['a free request that is far away', {}, { pollsDue: 1, free: 0, nextFreeMs: 40_000 }, waits(1_000)],
])('%s', (_, own, demand, expected) => {
  expect(planRound({ ...idle, ...own }, { ...nothingWaits, ...demand })).toMatchObject(expected)
})

test('if requests may soon be divided differently, the next look comes then', () => {
  const balance = { owedToPolls: 0, submissionsAllowed: 0.9, rarePollsAllowed: 0, atMs: idle.nowMs }
  const plan = planRound({ ...idle, balance }, { ...nothingWaits, submissionsReady: 500, free: 10, nextFreeMs: 400 })
  expect(plan.kind).toBe('wait')
  expect(plan.kind === 'wait' && plan.forMs).toBeLessThan(100)
})

test('an instance skips the query only for what it knows itself', () => {
  expect(blockedWaitMs(idle)).toBeNull()
  expect(blockedWaitMs({ ...idle, isPausing: true })).toBe(50)
  expect(blockedWaitMs({ ...idle, mayClaim: false })).toBe(1_000)
  expect(blockedWaitMs({ ...idle, inFlight: 7 })).toBeNull()
  expect(blockedWaitMs({ ...idle, inFlight: 8 })).toBe(1_000)
})
