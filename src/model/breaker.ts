import type { Config } from '../config.ts'
import type { BreakerAnswer, BreakerSign } from './dispatch.ts'
import type { PauseToRaise } from './service.ts'
import { type Change, isEndState, mayEarlierHaveArrived, type Transition } from './submission.ts'

/**
 * The breaker keeps all instances from sending while the service is down. It is one row of the ledger, so one answer
 * stops all instances:
 *
 *     closed ── an answer fails ──> open ── its time is over ──> half-open: one request, the trial
 *        ^                           ^                               │
 *        └───────── the trial works ─┼───────────────────────────────┤
 *                                    └──── the trial fails: longer ──┘
 *
 * It opens at one 503, E003, 429, refused token, redirect or 403, at a connection that fails, or at five requests in a
 * row without a usable answer (src/daemon/dispatch/interpretAttempt.ts). While it is open, answers to requests that were
 * on the wire by then change nothing.
 *
 * The trial is one request of all instances, until its own deadline: then another one may begin. If possible it is not
 * for the record that opened the breaker. A poll goes first, because it risks nothing; after a trial that failed, each
 * second time another request, because polls may fail that alone are the cause. If an answer to a submission
 * opened the breaker, a GET that works is followed by one submission, because a service may answer polls and hang on
 * submissions; meanwhile polls go on. Each such trial may leave its record in doubt, also if its daemon dies: after
 * `doubtsMax` in doubt, the next submission waits for a person.
 *
 * The record whose answer opened the breaker goes behind all that wait when the pause ends. If that happens to it
 * `openingsMax` times while submissions of others got through in between, the record is the cause, and ends.
 */
export interface Breaker {
  state: 'closed' | 'open' | 'half_open'
  /** Trials that failed since the breaker was closed: the step of the backoff. If odd, a poll is not the next trial. */
  level: number
  /** An answer to a submission failed since the breaker was closed. */
  isOfSubmission: boolean
  /** Such an answer left its record in doubt, so that the next submission is a risk. */
  isInDoubt: boolean
  /** Half-open: polls go on, and the next trial is a submission. */
  hasGetWorked: boolean
  /** Trials of submissions that ended in doubt. */
  doubts: number
  /** The request that is the trial; null if none is under way. */
  trial: string | null
  /** True if the pause is over and no trial is under way. */
  isDue: boolean
}

export const closedBreaker: Breaker = {
  state: 'closed',
  level: 0,
  isOfSubmission: false,
  isInDoubt: false,
  hasGetWorked: false,
  doubts: 0,
  trial: null,
  isDue: false,
}

export interface Opening {
  /** Polls go on while a submission waits for a person. */
  hasGetWorked: boolean
  pause: PauseToRaise
  code: string | null
  level: number
  /** Null: until a person acts. */
  forMs: number | null
  openedBy: string | null
  isOfSubmission: boolean
  isInDoubt: boolean
  doubts: number
}

export type BreakerStep =
  | { kind: 'stays' }
  | ({ kind: 'opens' } & Opening)
  /** Another trial may begin at once. */
  | { kind: 'tries-again'; hasGetWorked: boolean }
  | { kind: 'closes' }

/** Milliseconds that a pause lasts, by failed trials. The last step repeats. */
export type PauseBackoff = Record<PauseToRaise['reason'], readonly number[]>

/** See docs/why/states.md, "Pauses". */
export function createPauseBackoff({
  unavailablePauseMs,
  unauthorizedPauseMs,
}: Pick<Config, 'unavailablePauseMs' | 'unauthorizedPauseMs'>): PauseBackoff {
  return {
    throttled: [1_000, 2_000, 4_000, 8_000],
    unavailable: [unavailablePauseMs],
    unauthorized: [unauthorizedPauseMs],
    unreachable: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000],
  }
}

const doubtsMax = 3
const openingsMax = 3

export function decideBreaker(breaker: Breaker, answer: BreakerAnswer, backoff: PauseBackoff): BreakerStep {
  const { request, requestId, sign } = answer
  // Each trial needs a token first, so a token that is refused then is the trial's answer.
  const isTrial = request === 'token' ? breaker.isDue : breaker.trial === requestId
  // A poll that fails while polls go on opens the breaker again, but forgets no trial, and no wait for a person.
  const arePollsHeard = breaker.hasGetWorked && breaker.trial === null && breaker.doubts < doubtsMax
  const isHeard = isTrial || breaker.state === 'closed' || (arePollsHeard && request === 'poll')
  if (!isHeard || (!isTrial && sign.kind !== 'fails')) return { kind: 'stays' }
  switch (sign.kind) {
    case 'unknown':
      return { kind: 'tries-again', hasGetWorked: breaker.hasGetWorked }
    case 'works':
      return afterTrialThatWorked(breaker, request)
    case 'fails': {
      // Only what was asked for may be forbidden, or unknown. If a submission opened it, one submission follows anyway.
      const isUsable = isTrial && sign.isForbiddenGet && (request === 'question' || breaker.isOfSubmission)
      return isUsable ? afterTrialThatWorked(breaker, request) : open(breaker, answer, sign, { isTrial, backoff })
    }
    default:
      return sign satisfies never
  }
}

function afterTrialThatWorked({ isOfSubmission }: Breaker, request: BreakerAnswer['request']): BreakerStep {
  if (isOfSubmission && request !== 'submission') return { kind: 'tries-again', hasGetWorked: true }
  return { kind: 'closes' }
}

function open(
  breaker: Breaker,
  { request, submissionId }: BreakerAnswer,
  sign: BreakerSign & { kind: 'fails' },
  { isTrial, backoff }: { isTrial: boolean; backoff: PauseBackoff },
): BreakerStep {
  const { pause, code, isOfRecord, isInDoubt } = sign
  const level = breaker.state === 'closed' ? 0 : breaker.level + 1
  const doubts = breaker.doubts + (isTrial && request === 'submission' && isInDoubt ? 1 : 0)
  const waitsForPerson = doubts >= doubtsMax
  return {
    kind: 'opens',
    pause: waitsForPerson ? { ...pause, detail: `${pause.detail}; ${waitsForPersonClause}` } : pause,
    code,
    level,
    forMs: waitsForPerson ? null : pauseMs(pause, level, backoff),
    hasGetWorked: waitsForPerson && breaker.hasGetWorked && request === 'submission',
    openedBy: isOfRecord ? submissionId : null,
    isOfSubmission: breaker.isOfSubmission || sign.isOfSubmission,
    isInDoubt: breaker.isInDoubt || isInDoubt,
    doubts,
  }
}

/** A trial by a submission whose deadline passed without an answer: its daemon died, or was stopped. */
export interface LostTrial {
  requestId: string
  cause: PauseToRaise['reason']
  /** True if its record is left in doubt, as UNCERTAIN_POLICY is `hold`. */
  isInDoubt: boolean
}

export const lostTrialAnswer = ({ requestId, cause, isInDoubt }: LostTrial): BreakerAnswer => ({
  request: 'submission',
  requestId,
  submissionId: null,
  sign: {
    kind: 'fails',
    pause: { reason: cause, askedMs: null, detail: lostTrialMessage, logDetail: lostTrialMessage },
    code: null,
    isOfRecord: false,
    isOfSubmission: true,
    isInDoubt,
    isForbiddenGet: false,
  },
})

const lostTrialMessage =
  'the daemon that tried one submission was stopped before the answer was written; no record is sent until the service answers one request'

const waitsForPersonClause = `${doubtsMax} submissions were left in doubt one after the other, so nothing is sent until \`outboxd resume --all\``

/** A Retry-After counts with 429 if it is longer than the pause, and with 503 instead of the usual pause. */
function pauseMs({ reason, askedMs }: PauseToRaise, level: number, backoff: PauseBackoff): number {
  const stepMs = (steps: readonly number[]) => steps[Math.min(level, steps.length - 1)] ?? 0
  if (askedMs === null) return stepMs(backoff[reason])
  return Math.max(askedMs, stepMs(reason === 'throttled' ? backoff.throttled : backoff.unreachable))
}

/** What the ledger knows of a record whose answer opened the breaker. */
export interface OpenerHistory {
  openedTimes: number
  /** True if submissions of other records got through since it opened the breaker last. */
  othersGotThrough: boolean
}

/** Puts a record whose answer opened the breaker behind all that wait when the pause ends, or ends the record. */
export function moveOpenerBehind(transition: Transition, opening: Opening, history: OpenerHistory): Transition {
  const { change, poll, submission } = transition
  if (isEndState(change.state)) return transition
  const isCounted = history.openedTimes === 0 || history.othersGotThrough
  const openedTimes = history.openedTimes + (isCounted ? 1 : 0)
  if (openedTimes < openingsMax) return { ...transition, change: { ...putOff(change, opening), openedTimes } }
  const { pause, code } = opening
  const error = `${pause.detail}; this record paused sending ${openedTimes} times while others got through, so the cause is this record`
  const mayBeThere = poll !== null || change.state !== 'queued' || (change.inDoubt ?? submission.inDoubt)
  const { answeredUnavailable = submission.answeredUnavailable, resubmissions = submission.resubmissions } = change
  const mayHaveArrived = answeredUnavailable || mayEarlierHaveArrived({ ...submission, resubmissions })
  const told = { errorCode: code, error, openedTimes, ...(change.inDoubt && { inDoubt: true }) }
  return mayBeThere
    ? { ...transition, change: { ...told, state: 'uncertain', doneMs: null }, cause: 'uncertain', message: error }
    : {
        ...transition,
        change: { ...told, state: 'rejected', mayHaveArrived },
        cause: 'rejected',
        message: error,
      }
}

/** Polls that are due in one second are in no order, so a poll is put off for one second more. */
function putOff(change: Change, { forMs }: Opening): Change {
  if (forMs === null) return change
  if (change.state === 'queued') return { ...change, dueInMs: Math.max(change.dueInMs, forMs) }
  return 'pollInMs' in change ? { ...change, pollInMs: Math.max(change.pollInMs, forMs + 1_000) } : change
}
