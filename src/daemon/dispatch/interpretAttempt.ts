import type { AnsweredRecord, Refusal, RemainingRequests } from '../../model/dispatch.ts'
import {
  type Answer,
  isSuccessStatus,
  type MadeRequest,
  type Outcome,
  type PauseToRaise,
  type TrialVerdict,
  wasProcessSuspended,
} from '../../model/service.ts'
import { meaningOfHttpStatus, type PostAnswerMeaning } from '../../model/statuses.ts'
import type { AttemptResult, PollClaim, Submission } from '../../model/submission.ts'
import { emptyOutcome, type OutcomeToWrite } from './outcomeWriter.ts'

export interface FailureStreaks {
  silentRequests: number
  /** Unanswered POSTs in a row. Polls do not count, because a service may answer polls and hang on POSTs. */
  silentPosts: number
  /** Trials in a row whose token was refused. Expired tokens do not count. */
  trialTokensRefused: number
}

export const noFailureStreaks: FailureStreaks = { silentRequests: 0, silentPosts: 0, trialTokensRefused: 0 }

export interface JudgedTrial {
  verdict: TrialVerdict
  hasTokenExpired: boolean
}

export interface EndedAttempt {
  submission: Submission
  poll: PollClaim | null
  trial: boolean
  attempted: AttemptResult
  fingerprint: string | null
  outcome: Outcome | null
  judged: JudgedTrial | null
}

export interface AttemptContext {
  maxInFlight: number
  /** Requests that were free before this one was claimed. */
  free: number
  ageMs: () => number
}

export interface AttemptInterpretation {
  work: OutcomeToWrite
  isTokenRefused: boolean
  streaks: FailureStreaks
  /** True if the caller must reset the streaks after `work` is written. */
  shouldResetStreaks: boolean
}

/** Unanswered requests in a row that cause a pause. For records, `maxInFlight` if that is lower. */
const silentMax = 5

/** Returns what an answer means for its own record, and for all other records. */
export function interpretAttempt(
  attempt: EndedAttempt,
  streaks: FailureStreaks,
  circumstances: AttemptContext,
): AttemptInterpretation {
  const { submission, poll, trial, attempted, fingerprint, judged } = attempt
  const { step, answer } = attempted
  // A refused trial poll raises no pause, because only its transaction may be the cause. The next trial decides.
  const said =
    trial && poll !== null
      ? { ...trialResult(judged, streaks), pause: null }
      : { clears: false, ...pauseFor(attempt, streaks, circumstances) }
  return {
    work: {
      ...emptyOutcome,
      transition: {
        submission,
        poll,
        change: step.change,
        cause: step.cause,
        message: step.message,
        request: madeRequest(attempt),
      },
      pauses: said.pause ? [said.pause] : [],
      answeredRecords: poll === null ? answeredRecordsOfAttempt(submission, attempted, fingerprint) : [],
      refusals: poll === null ? refusalsOfAttempt(submission, attempted, fingerprint) : [],
      trialSucceeded: said.clears,
      trialEnded: trial,
      remaining: remainingIn(answer, circumstances),
    },
    isTokenRefused: answer?.kind === 'response' && answer.status === 401,
    streaks: said.streaks,
    shouldResetStreaks: said.pause !== null,
  }
}

function madeRequest({ poll, attempted: { answer }, outcome }: EndedAttempt): MadeRequest | null {
  if (answer === null || outcome === null) return null
  return { kind: poll === null ? 'submit' : 'status', outcome, tookMs: answer.tookMs }
}

export function interpretTrialWithoutRecord(
  asked: { answer: Answer; judged: JudgedTrial } | null,
  streaks: FailureStreaks,
  circumstances: AttemptContext,
): AttemptInterpretation {
  const said = trialResult(asked?.judged ?? null, streaks)
  return {
    work: {
      ...emptyOutcome,
      pauses: said.pause ? [said.pause] : [],
      trialSucceeded: said.clears,
      trialEnded: true,
      remaining: remainingIn(asked?.answer ?? null, circumstances),
    },
    isTokenRefused: asked?.judged.verdict.kind === 'token-refused',
    streaks: said.streaks,
    shouldResetStreaks: false,
  }
}

export function resetUnansweredStreaks({ trialTokensRefused }: FailureStreaks): FailureStreaks {
  return { ...noFailureStreaks, trialTokensRefused }
}

function trialResult(
  judged: JudgedTrial | null,
  streaks: FailureStreaks,
): { clears: boolean; pause: PauseToRaise | null; streaks: FailureStreaks } {
  if (judged === null) return { clears: false, pause: null, streaks }
  const { verdict, hasTokenExpired } = judged
  switch (verdict.kind) {
    case 'clear':
      return { clears: true, pause: null, streaks: { ...streaks, trialTokensRefused: 0 } }
    case 'pause':
      return { clears: false, pause: verdict.pause, streaks: { ...streaks, trialTokensRefused: 0 } }
    case 'token-refused': {
      const tokensRefused = streaks.trialTokensRefused + (hasTokenExpired ? 0 : 1)
      return {
        clears: false,
        pause: tokensRefused > 1 ? verdict.pause : null,
        streaks: { ...streaks, trialTokensRefused: tokensRefused },
      }
    }
    default:
      return verdict satisfies never
  }
}

function pauseFor(
  { poll, trial, attempted: { step, answer, breach } }: EndedAttempt,
  streaks: FailureStreaks,
  { maxInFlight }: AttemptContext,
): { pause: PauseToRaise | null; streaks: FailureStreaks } {
  if (step.pause !== null || answer === null) return { pause: step.pause, streaks }
  // An answer without an id leaves the record in doubt, too.
  const silent = isSilentAnswer(answer) || breach === 'missing_id'
  const now = countSilence(silent, poll === null, streaks)
  const isLong = now.silentRequests >= silentMax || now.silentPosts >= Math.min(silentMax, maxInFlight)
  // For the first record after a pause, one missing answer is enough.
  if (!isLong && !(trial && silent)) return { pause: null, streaks: now }
  const call = answer.kind === 'response' ? answeredInstead(step.message, answer.status) : silence
  return {
    pause: trial && poll === null && !call.answeredByOther ? { ...call, hasLongBackoff: true } : call,
    streaks: now,
  }
}

function countSilence(silent: boolean, isRecord: boolean, streaks: FailureStreaks): FailureStreaks {
  const count = (before: number) => (silent ? before + 1 : 0)
  return {
    ...streaks,
    silentRequests: count(streaks.silentRequests),
    silentPosts: isRecord ? count(streaks.silentPosts) : streaks.silentPosts,
  }
}

/**
 * Returns the remaining requests that the answer states, if they are fewer than expected: another client may spend from
 * the same limit.
 */
function remainingIn(answer: Answer | null, { free, ageMs }: AttemptContext): RemainingRequests | null {
  const remaining = answer?.kind === 'response' ? answer.rateRemaining : null
  return remaining !== null && remaining < free ? { requests: remaining, ageMs } : null
}

/** This pause keeps a hanging service from putting one record after another in doubt. */
const silence: PauseToRaise = callAfter('several requests in a row were not answered')

function answeredInstead(summary: string | null, status: number): PauseToRaise {
  const seen = 'several requests in a row got no usable answer from the service'
  const { logDetail } = callAfter(`${seen}, the last: ${status}`)
  return { ...callAfter(`${seen}, the last: ${summary ?? status}`), logDetail, answeredByOther: true }
}

function callAfter(seen: string): PauseToRaise & { logDetail: string } {
  const detail = `${seen}; no record is sent until the service answers a test request of the daemon (\`outboxd check\` shows the answer)`
  return { reason: 'unreachable', askedMs: null, detail, logDetail: detail }
}

/**
 * True for a timeout, a lost connection, a gateway's 502, or a success that is not JSON. Never true for E003, because
 * E003 comes from the service itself.
 */
function isSilentAnswer(answer: Answer): boolean {
  if (answer.kind === 'no-answer') return answer.sent && !wasProcessSuspended(answer)
  const { post } = meaningOfHttpStatus(answer.status)
  if (answer.code === 'E003') return false
  return post === 'in-doubt' || (post === 'taken' && answer.json === undefined)
}

const isAboutTransport = (status: number): boolean => transportMeanings.has(meaningOfHttpStatus(status).post)
const transportMeanings: ReadonlySet<PostAnswerMeaning> = new Set([
  'token-refused',
  'forbidden',
  'nothing-there',
  'throttled',
])

function answeredRecordsOfAttempt(
  { resource, met }: Submission,
  { answer, step }: AttemptResult,
  fingerprint: string | null,
): AnsweredRecord[] {
  if (answer?.kind !== 'response' || step.pause !== null) return []
  const { status, json, code } = answer
  const accepted = isSuccessStatus(status) && step.change.state !== 'uncertain'
  const refused = status >= 400 && status < 500 && json !== undefined && !isAboutTransport(status) && code !== 'E003'
  return accepted || refused ? [{ resource, met: met?.reason ?? null, hasServiceVerdict: fingerprint === null }] : []
}

function refusalsOfAttempt(
  { id: submissionId, resource }: Submission,
  { answer, step }: AttemptResult,
  fingerprint: string | null,
): Refusal[] {
  const { change } = step
  if (fingerprint === null || answer?.kind !== 'response' || change.state !== 'rejected') return []
  if (isAboutTransport(answer.status)) return []
  return [{ submissionId, resource, fingerprint, summary: change.error }]
}
