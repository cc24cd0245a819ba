import type { BreakerAnswer, BreakerSign, RemainingRequests } from '../../model/dispatch.ts'
import type { Answer, Outcome, PauseToRaise } from '../../model/service.ts'
import { meaningOfHttpStatus, namesIdInLocation } from '../../model/statuses.ts'
import type { AttemptResult, PollClaim, Submission } from '../../model/submission.ts'
import { emptyOutcome, type OutcomeToWrite } from './outcomeWriter.ts'

/** Requests of this instance in a row that got no usable answer. */
export interface SilentStreaks {
  requests: number
  /** Submissions only, because a service may answer polls and hang on submissions. */
  submissions: number
}

export const noSilence: SilentStreaks = { requests: 0, submissions: 0 }

export interface EndedAttempt {
  submission: Submission
  poll: PollClaim | null
  requestId: string
  isTrial: boolean
  attempted: AttemptResult
  outcome: Outcome | null
}

export interface AnsweredQuestion {
  /** Null if the request never left. */
  answer: Answer | null
  /** The pause that the answer asks for. */
  pause: PauseToRaise | null
  /** True if a 401 may only mean that the token has to be renewed. */
  mayTokenBeOld: boolean
}

export interface AttemptContext {
  maxInFlight: number
  /** Requests that were free before this one was claimed. */
  free: number
  ageMs: () => number
}

export interface AttemptInterpretation {
  work: OutcomeToWrite
  streaks: SilentStreaks
}

/** Unanswered requests in a row that open the breaker. For submissions, `maxInFlight` if that is lower. */
const silentMax = 5

/** Returns what an answer means for its own record, and for the breaker. */
export function interpretAttempt(
  attempt: EndedAttempt,
  streaks: SilentStreaks,
  context: AttemptContext,
): AttemptInterpretation {
  const { submission, poll, requestId, isTrial, attempted, outcome } = attempt
  const { step, answer } = attempted
  const request = poll === null ? 'submission' : 'poll'
  const silence = silenceOf(attempted)
  const next = streaksAfter(attempt, silence !== null, streaks)
  const sign = signOf(attempt, { silence, streaks: next, maxInFlight: context.maxInFlight })
  return {
    work: {
      ...emptyOutcome,
      transition: {
        submission,
        poll,
        change: step.change,
        cause: step.cause,
        message: step.message,
        request:
          answer === null || outcome === null
            ? null
            : { kind: poll === null ? 'submit' : 'status', outcome, tookMs: answer.tookMs },
      },
      answers: toBreakerAnswers({ request, requestId, submissionId: submission.id, sign }, isTrial),
      remaining: findRemaining(answer, context),
    },
    streaks: next,
  }
}

/** Judges the GET of a transaction that the service knows. Almost any answer shows that the service works. */
export function interpretQuestion(
  { requestId, answer, pause, mayTokenBeOld }: AnsweredQuestion & { requestId: string },
  streaks: SilentStreaks,
  context: AttemptContext,
): AttemptInterpretation {
  const silence = answer === null ? null : silenceIn(answer, questionMessage(answer))
  const isUnknown = answer === null || (isRefusedToken(answer) && mayTokenBeOld)
  const called = pause ?? silence
  const sign: BreakerSign =
    isUnknown || called === null
      ? { kind: isUnknown ? 'unknown' : 'works' }
      : fails(called, { answer, isOfSubmission: false, isInDoubt: false, isGet: true })
  return {
    work: {
      ...emptyOutcome,
      answers: [{ request: 'question', requestId, submissionId: null, sign }],
      remaining: findRemaining(answer, context),
    },
    streaks,
  }
}

/** The breaker's answer if no token was got. */
export const refusedTokenAnswer = (pause: PauseToRaise): BreakerAnswer => ({
  request: 'token',
  requestId: null,
  submissionId: null,
  sign: fails(pause, { answer: null, isOfSubmission: false, isInDoubt: false, isGet: true }),
})

/** The breaker's answer if a trial never left. */
export const unsentTrialAnswer = (requestId: string): BreakerAnswer => ({
  request: 'submission',
  requestId,
  submissionId: null,
  sign: { kind: 'unknown' },
})

const toBreakerAnswers = (answer: BreakerAnswer, isTrial: boolean): BreakerAnswer[] =>
  isTrial || answer.sign.kind === 'fails' ? [answer] : []

export const isRefusedToken = (answer: Answer | null): boolean => answer?.kind === 'response' && answer.status === 401

function signOf(
  { poll, isTrial, attempted: { step, answer } }: EndedAttempt,
  given: { silence: PauseToRaise | null; streaks: SilentStreaks; maxInFlight: number },
): BreakerSign {
  const { silence, streaks, maxInFlight } = given
  if (answer === null || step.cause === 'new_token') return { kind: 'unknown' }
  const isGet = poll !== null
  if (step.pause !== null) {
    // After a redirect the record may have arrived.
    const isInDoubt = step.change.state === 'uncertain' || step.change.inDoubt === true
    return fails(step.pause, { answer, isOfSubmission: !isGet, isInDoubt, isGet })
  }
  if (silence === null) return { kind: 'works' }
  const isLong = streaks.requests >= silentMax || streaks.submissions >= Math.min(silentMax, maxInFlight)
  // For a trial, one missing answer is enough.
  if (!isLong && !isTrial) return { kind: 'unknown' }
  // A poll may be the last of a streak in which submissions were left in doubt.
  const isInDoubt = isGet ? streaks.submissions > 0 : step.change.state === 'uncertain'
  return fails(silence, { answer, isOfSubmission: streaks.submissions > 0, isInDoubt, isGet })
}

function fails(
  pause: PauseToRaise,
  given: { answer: Answer | null; isOfSubmission: boolean; isInDoubt: boolean; isGet: boolean },
): BreakerSign {
  const { answer, isOfSubmission, isInDoubt, isGet } = given
  const status = answer?.kind === 'response' ? answer.status : null
  // Nothing left, or the limit is spent: neither is the fault of a record, nor of submissions.
  const isOfRecord = answer !== null && !(answer.kind === 'no-answer' && !answer.sent) && pause.reason !== 'throttled'
  return {
    kind: 'fails',
    pause,
    code: answer?.kind === 'response' ? answer.code : null,
    isOfRecord,
    isOfSubmission: isOfSubmission && isOfRecord,
    isInDoubt,
    isForbiddenGet: isGet && status === 403,
  }
}

function streaksAfter({ poll, attempted }: EndedAttempt, isSilent: boolean, before: SilentStreaks): SilentStreaks {
  const { requests, submissions } = before
  if (isSilent) return { requests: requests + 1, submissions: poll === null ? submissions + 1 : submissions }
  if (attempted.answer === null) return before
  return { requests: 0, submissions: poll === null ? 0 : submissions }
}

/**
 * Returns the remaining requests that the answer states, if they are fewer than expected: another client may spend from
 * the same limit.
 */
function findRemaining(answer: Answer | null, { free, ageMs }: AttemptContext): RemainingRequests | null {
  const remaining = answer?.kind === 'response' ? answer.rateRemaining : null
  return remaining !== null && remaining < free ? { requests: remaining, ageMs } : null
}

/** The pause if this and several more requests get no usable answer; null if the answer is usable. */
function silenceOf({ step, answer, breach }: AttemptResult): PauseToRaise | null {
  if (answer === null || step.pause !== null) return null
  // An answer without an id leaves the record in doubt, too.
  if (breach === 'missing_id' && answer.kind === 'response') return answeredInstead(step.message, answer.status)
  return silenceIn(answer, step.message)
}

const questionMessage = (answer: Answer): string | null =>
  answer.kind === 'response' ? `a test request got ${answer.status}` : null

/**
 * A timeout, a lost connection, a gateway's 502, or a success that is not JSON. Never E003, because E003 comes from the
 * service itself.
 */
function silenceIn(answer: Answer, said: string | null): PauseToRaise | null {
  if (answer.kind === 'no-answer') return answer.sent ? unanswered : null
  const { post } = meaningOfHttpStatus(answer.status)
  if (answer.code === 'E003') return null
  const hasId = namesIdInLocation(answer.status) && answer.locationId !== null
  const isUnusable = post === 'in-doubt' || (post === 'taken' && answer.json === undefined && !hasId)
  return isUnusable ? answeredInstead(said, answer.status) : null
}

/** This pause keeps a hanging service from putting one record after another in doubt. */
const unanswered: PauseToRaise = callAfter('requests were not answered')

function answeredInstead(said: string | null, status: number): PauseToRaise {
  const seen = 'requests got no usable answer from the service'
  return {
    ...callAfter(`${seen}, the last: ${said ?? status}`),
    logDetail: callAfter(`${seen}, the last: ${status}`).detail,
  }
}

function callAfter(seen: string): PauseToRaise {
  const detail = `${seen}; no record is sent until the service answers one request (\`outboxd check\` shows the answer)`
  return { reason: 'unreachable', askedMs: null, detail, logDetail: detail }
}
